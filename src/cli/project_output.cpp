#include "cli/project_output.h"

#include "cli/prediction_output.h"
#include "cli/print_json.h"
#include "core/text.h"

namespace ridgeline::cli {
namespace {

using nlohmann::json;
using project::Projection;
using project::Range;
using project::Spent;

constexpr double kFewDays = 3;  // less reads better in hours and minutes

json to_json(const Range& range) { return {{"low", range.low}, {"middle", range.middle}, {"high", range.high}}; }
json to_json(const std::optional<Range>& range) { return range ? to_json(*range) : json(); }

json parts_json(const Projection& projection) {
  const Spent& spent = projection.spent;
  constexpr double kHour = 3600;
  return {{"steps", (spent.work - projection.evaluation_seconds - projection.pause_seconds) / kHour},
          {"of_which_ramp", projection.ramp_seconds / kHour},
          {"pauses", projection.pause_seconds / kHour},
          {"evaluation", projection.evaluation_seconds / kHour},
          {"checkpoints", spent.saves / kHour},
          {"starts", spent.starts / kHour},
          {"restarts", spent.restarts / kHour},
          {"lost_work", spent.lost / kHour},
          {"ends_of_jobs", spent.idle / kHour},
          {"queue_waits", spent.waits / kHour}};
}

json option_json(const project::Option& option) {
  const Projection& projection = option.projection;
  return {{"nodes", option.nodes},
          {"devices", projection.devices},
          {"step_seconds", to_json(projection.step_seconds)},
          {"days", to_json(projection.days)},
          {"node_hours", to_json(projection.node_hours)},
          {"energy_mwh", to_json(projection.energy_mwh)}};
}

json measured_json(const project::StepTime& time) {
  return {{"steps", time.steps},           {"warm_up", time.warm_up},           {"median_seconds", time.median},
          {"slow_share", time.slow_share}, {"slow_seconds", time.slow_seconds}, {"drift", time.drift},
          {"drifts", time.drifts},         {"correlated_steps", time.batch},    {"run_variation", time.run_variation}};
}

void print_part(const char* name, double seconds, double whole, const std::string& note) {
  if (seconds <= 0) return;
  fmt::print("  {:12} {:>12} {:6.2f} %  {}\n", name, format_duration(seconds), 100 * seconds / whole, note);
}

std::string number(double value) {
  if (value >= 1e5) return format_count(value);
  return value >= 100 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

void print_range(const char* name, const std::optional<Range>& range) {
  if (!range) return;
  fmt::print("  {:14} {:>12} {:>12} {:>12}\n", name, number(range->low), number(range->middle), number(range->high));
}

void print_steps(const ProjectQuestion& question, const Projection& projection) {
  const Range& step = projection.step_seconds;
  fmt::print("{:.0f} steps of {} ({} to {}), ", projection.steps, format_duration(step.middle),
             format_duration(step.low), format_duration(step.high));
  const auto& measured = question.steps.measured();
  if (!measured) {
    fmt::print("predicted for {}\n", question.machine->name);
    return;
  }
  fmt::print("from {} recorded after {} of warm-up\n", measured->steps, measured->warm_up);
  if (measured->slow_share > 0) {
    fmt::print("slow steps: {:.2g} % of them, {:.1f} % of the time\n", 100 * measured->slow_share,
               100 * measured->slow_seconds / step.middle);
  }
  if (measured->drifts) {
    fmt::print("drift: the second half of the steps took {:+.1f} %; the range allows for as much again\n",
               100 * measured->drift);
  }
  if (const auto error = question.steps.prediction_error()) {
    fmt::print("the prediction for {} is {:+.1f} % off what was measured\n", question.machine->name, 100 * *error);
  }
}

void print_parts(const Projection& projection) {
  const Spent& spent = projection.spent;
  const double whole = spent.whole();
  const double steps = spent.work - projection.evaluation_seconds - projection.pause_seconds;
  fmt::print("\nWhere the time goes, on average:\n");
  print_part("steps", steps, whole,
             projection.ramp_seconds > 0 ? format_duration(projection.ramp_seconds) + " of it the batch's ramp" : "");
  print_part("pauses", projection.pause_seconds, whole, "between steps");
  print_part("evaluation", projection.evaluation_seconds, whole, "");
  print_part("checkpoints", spent.saves, whole,
             fmt::format("{} of {}, every {:.0f} steps ({})", format_duration(projection.save_seconds),
                         format_bytes(projection.checkpoint_bytes), projection.interval_steps,
                         format_duration(projection.interval_seconds)));
  print_part("starts", spent.starts, whole, fmt::format("{:.0f} jobs", spent.jobs));
  print_part("restarts", spent.restarts, whole,
             projection.mtbf_seconds
                 ? fmt::format("{:.1f} failures, one in {}", spent.failures, format_duration(*projection.mtbf_seconds))
                 : "");
  print_part("lost work", spent.lost, whole, "since the last checkpoint before a failure");
  print_part("job ends", spent.idle, whole, "too short to do anything");
  print_part("queue", spent.waits, whole, "");
}

void print_options(const ProjectAnswer& answer, int64_t own_nodes) {
  if (answer.options.size() < 2) return;
  fmt::print("\nOther numbers of nodes, with the same layout and batch:\n");
  fmt::print("  {:>7} {:>8} {:>10} {:>24} {:>12} {:>10}\n", "nodes", "devices", "step", "days (low to high)",
             "node-hours", "MWh");
  for (const project::Option& option : answer.options) {
    const Projection& p = option.projection;
    fmt::print("{} {:>7} {:>8} {:>10} {:>24} {:>12} {:>10}\n", option.nodes == own_nodes ? "*" : " ", option.nodes,
               p.devices, format_duration(p.step_seconds.middle),
               fmt::format("{} ({} to {})", number(p.days.middle), number(p.days.low), number(p.days.high)),
               number(p.node_hours.middle), p.energy_mwh ? number(p.energy_mwh->middle) : "-");
  }
}

void print_wishes(const ProjectAnswer& answer, const Projection& projection) {
  if (answer.deadline_days && answer.fewest) {
    fmt::print("\nWithin {} days: {} nodes at least ({} to {} days, {} node-hours)\n", number(*answer.deadline_days),
               answer.fewest->nodes, number(answer.fewest->projection.days.low),
               number(answer.fewest->projection.days.high), number(answer.fewest->projection.node_hours.middle));
  } else if (answer.deadline_days) {
    fmt::print("\nWithin {} days: on no number of nodes that this layout and batch divide over\n",
               number(*answer.deadline_days));
  }
  if (answer.budget) {
    fmt::print("\n{} node-hours pay for {} tokens on {} nodes\n", number(*answer.budget),
               format_count(answer.tokens_of_budget), projection.nodes);
  }
}

}  // namespace

void print_text(const ProjectQuestion& question, const ProjectAnswer& answer) {
  const Projection& projection = answer.projection;
  fmt::print("{}: {} tokens{}\n", question.of, format_count(projection.tokens),
             question.tokens_are_optimal ? " (20 a parameter, near compute-optimal)" : "");
  fmt::print("{} devices{}\n", projection.devices,
             question.machine ? fmt::format(" = {} nodes of {}", projection.nodes, question.machine->name) : "");
  print_steps(question, projection);
  fmt::print("\n  {:14} {:>12} {:>12} {:>12}\n", "", "low", "likely", "high");
  const Range& days = projection.days;
  if (days.high >= kFewDays) {
    print_range("days", days);
  } else {
    fmt::print("  {:14} {:>12} {:>12} {:>12}\n", "time", format_duration(86400 * days.low),
               format_duration(86400 * days.middle), format_duration(86400 * days.high));
  }
  print_range("device-hours", projection.device_hours);
  if (question.machine) print_range("node-hours", projection.node_hours);
  print_range("energy, MWh", projection.energy_mwh);
  print_range("of devices", projection.device_energy_mwh);
  print_range("cost", projection.cost);
  print_parts(projection);
  print_options(answer, projection.nodes - question.conditions.spare_nodes);
  print_wishes(answer, projection);
  for (const std::string& line : projection.assumptions) fmt::print("\nassumed: {}", line);
  if (!projection.assumptions.empty()) fmt::print("\n");
}

void print_document(const ProjectQuestion& question, const ProjectAnswer& answer) {
  const Projection& projection = answer.projection;
  json document = {{"tokens", projection.tokens},
                   {"tokens_are_compute_optimal", question.tokens_are_optimal},
                   {"devices", projection.devices},
                   {"nodes", projection.nodes},
                   {"machine", question.machine ? json(question.machine->name) : json()},
                   {"strategy", to_json(question.steps.spec().strategy)},
                   {"steps", projection.steps},
                   {"step_seconds", to_json(projection.step_seconds)},
                   {"days", to_json(projection.days)},
                   {"node_hours", to_json(projection.node_hours)},
                   {"device_hours", to_json(projection.device_hours)},
                   {"energy_mwh", to_json(projection.energy_mwh)},
                   {"device_energy_mwh", to_json(projection.device_energy_mwh)},
                   {"cost", to_json(projection.cost)},
                   {"hours", parts_json(projection)},
                   {"failures", projection.spent.failures},
                   {"jobs", projection.spent.jobs},
                   {"checkpoint",
                    {{"bytes", projection.checkpoint_bytes},
                     {"save_seconds", projection.save_seconds},
                     {"interval_seconds", projection.interval_seconds},
                     {"interval_steps", projection.interval_steps}}},
                   {"assumptions", projection.assumptions}};
  if (projection.mtbf_seconds) document["mtbf_hours"] = *projection.mtbf_seconds / 3600;
  if (question.steps.measured()) document["measured"] = measured_json(*question.steps.measured());
  if (const auto error = question.steps.prediction_error()) document["prediction_error"] = *error;
  document["what_if"] = json::array();
  for (const project::Option& option : answer.options) document["what_if"].push_back(option_json(option));
  if (answer.deadline_days) {
    document["deadline"] = {{"days", *answer.deadline_days},
                            {"fewest_nodes", answer.fewest ? option_json(*answer.fewest) : json()}};
  }
  if (answer.budget) document["budget"] = {{"node_hours", *answer.budget}, {"tokens", answer.tokens_of_budget}};
  print_json(document);
}

}  // namespace ridgeline::cli
