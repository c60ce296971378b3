// ridgeline plan: the best strategies for a model on a machine.
#include <chrono>
#include <memory>

#include "cli/commands.h"
#include "cli/guarded.h"
#include "cli/plan_question.h"
#include "cli/prediction_output.h"
#include "cli/print_json.h"
#include "core/error.h"
#include "core/log.h"
#include "core/text.h"

namespace ridgeline::cli {
namespace {

using nlohmann::json;

json entry(const simulate::Prediction& prediction, const PlanQuestion& question) {
  json document = to_json(prediction);
  document["trainable"] = spec::is_trainable(question.train.model);
  return document;
}

json heading(const PlanArguments& arguments, const PlanQuestion& question) {
  return {{"model", arguments.model},
          {"machine", question.machine.name},
          {"machine_purpose", to_string(question.machine.purpose)},
          {"precision", to_string(question.evaluator.compute())}};
}

json entry(const Change& change, const PlanQuestion& question) {
  json document = {{"change", change.text},
                   {"step_seconds", change.best.step_seconds},
                   {"strategy", to_json(change.best.strategy)},
                   {"trainable", spec::is_trainable(question.train.model)}};
  if (change.devices > 0) document["devices"] = change.devices;
  if (change.sequence > 0) document["sequence"] = change.sequence;
  return document;
}

struct Answer {
  int64_t devices = 0;
  search::Ranking ranking;
  std::vector<Change> changes;  // where nothing fits
  double seconds = 0;
};

void print_document(const PlanArguments& arguments, const PlanQuestion& question, const Answer& answer) {
  json document = heading(arguments, question);
  document["devices"] = answer.devices;
  document["considered"] = answer.ranking.considered;
  document["fitting"] = answer.ranking.fitting;
  document["seconds"] = answer.seconds;
  document["strategies"] = json::array();
  for (const auto& prediction : answer.ranking.best) document["strategies"].push_back(entry(prediction, question));
  if (answer.ranking.best.empty()) {
    json changes = json::array();
    for (const Change& change : answer.changes) changes.push_back(entry(change, question));
    document["nearest"] = json::array();
    for (const search::Miss& miss : answer.ranking.nearest) {
      json near = entry(miss.prediction, question);
      near["missing_bytes"] = miss.missing_bytes;
      near["changes"] = changes;
      document["nearest"].push_back(near);
    }
  }
  print_json(document);
}

void print_misses(const Answer& answer) {
  fmt::print("\nNothing fits. Nearest:\n");
  for (const search::Miss& miss : answer.ranking.nearest) {
    fmt::print("  misses by {}: {}\n", format_bytes(miss.missing_bytes), describe(miss.prediction.strategy));
  }
  fmt::print("What would fit:\n");
  if (answer.changes.empty()) fmt::print("  nothing that was tried\n");
  for (const Change& change : answer.changes) {
    fmt::print("  {}: {}, {} a step\n", change.text, describe(change.best.strategy),
               format_duration(change.best.step_seconds));
  }
}

void print_text(const PlanArguments& arguments, const PlanQuestion& question, const Answer& answer) {
  fmt::print("{} on {} devices of {}, {}, global batch {}: {} strategies considered, {} fit, {}\n", arguments.model,
             answer.devices, question.machine.name, to_string(question.evaluator.compute()), arguments.global_batch,
             answer.ranking.considered, answer.ranking.fitting, format_duration(answer.seconds));
  if (answer.ranking.best.empty()) return print_misses(answer);
  fmt::print("\n{}", prediction_header());
  for (const auto& prediction : answer.ranking.best) {
    std::string line = prediction_line(prediction);
    if (!spec::is_trainable(question.train.model)) {
      line.insert(line.size() - 1, " (not trainable yet)");
    }
    fmt::print("{}", line);
  }
  const simulate::Prediction& best = answer.ranking.best.front();
  fmt::print("\nBest: {}\n{}{}", describe(best.strategy), time_table(best),
             memory_table(best.memory, question.machine.device.memory_gib));
}

int plan_devices(const PlanArguments& arguments, const PlanQuestion& question, int64_t devices) {
  const auto start = std::chrono::steady_clock::now();
  Answer answer{devices, rank(question, arguments, devices, arguments.top), {}, 0};
  // First of all: where it cannot be written, nothing is printed.
  if (!arguments.write.empty()) write_config(arguments, question, answer.ranking, devices);
  if (answer.ranking.best.empty()) answer.changes = changes_that_fit(question, arguments, devices);
  answer.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (arguments.wants_json) {
    print_document(arguments, question, answer);
  } else {
    print_text(arguments, question, answer);
  }
  return kDone;
}

struct Point {
  int64_t nodes = 0;
  simulate::Prediction best;
  double node_hours_per_gigatoken() const {
    return static_cast<double>(nodes) * 1e9 / best.tokens_per_second / 3600;
  }
};

std::vector<Point> curve_of(const PlanArguments& arguments, const PlanQuestion& question, int64_t most_nodes) {
  std::vector<Point> points;
  int64_t considered = 0;
  for (int64_t nodes = 1; nodes <= most_nodes; nodes *= 2) {
    const search::Space space = space_of(arguments, question.train.model, nodes * question.machine.devices_per_node);
    search::Ranking ranking = search::rank(question.evaluator, space, 1);
    considered += ranking.considered;
    if (!ranking.best.empty()) points.push_back({nodes, std::move(ranking.best.front())});
  }
  if (considered > 0) return points;
  throw InputError("--global-batch {}: no strategy on powers of two up to {} nodes divides it; use a multiple of {}",
                   arguments.global_batch, most_nodes, question.machine.devices_per_node);
}

// Without --nodes: how devices trade against time.
int plan_curve(const PlanArguments& arguments, const PlanQuestion& question) {
  const int64_t most_nodes = question.machine.nodes > 0 ? question.machine.nodes : 4096;
  const std::vector<Point> points = curve_of(arguments, question, most_nodes);
  if (arguments.wants_json) {
    json document = heading(arguments, question);
    document["curve"] = json::array();
    for (const Point& point : points) {
      json line = entry(point.best, question);
      line["nodes"] = point.nodes;
      line["devices"] = point.best.strategy.ranks();
      line["node_hours_per_gigatoken"] = point.node_hours_per_gigatoken();
      document["curve"].push_back(line);
    }
    print_json(document);
    return kDone;
  }
  if (points.empty()) fmt::print("Nothing fits on powers of two up to {} nodes.\n", most_nodes);
  if (points.empty()) return kDone;
  fmt::print("{:>7} {:>8} {:>10} {:>12} {:>13} {:>6}  {}\n", "nodes", "devices", "step", "tokens/s", "node-h / Gtok",
             "MFU", "strategy");
  for (const Point& point : points) {
    fmt::print("{:7} {:8} {:>10} {:>12} {:13.1f} {:5.1f}%  {}\n", point.nodes, point.best.strategy.ranks(),
               format_duration(point.best.step_seconds), format_count(point.best.tokens_per_second),
               point.node_hours_per_gigatoken(), 100 * point.best.mfu, describe(point.best.strategy));
  }
  return kDone;
}

int plan(const PlanArguments& arguments) {
  set_up_log();
  const PlanQuestion question = question_of(arguments);
  const int64_t devices = arguments.machine.device_count(question.machine);
  if (devices > 0) return plan_devices(arguments, question, devices);
  if (!arguments.write.empty()) {
    throw InputError("--write {}: a config is for a number of devices; add --nodes or --devices", arguments.write);
  }
  return plan_curve(arguments, question);
}

}  // namespace

void add_plan_command(CLI::App& program, int& exit_code) {
  auto arguments = std::make_shared<PlanArguments>();
  CLI::App* command = program.add_subcommand("plan", "Find the best strategies for a model on a machine");
  command
      ->add_option("--model", arguments->model,
                   "a named model, such as gpt-175b, or a config file of ours or of another program")
      ->required();
  arguments->machine.add_to(*command);
  command->add_option("--global-batch", arguments->global_batch, "samples of a step")
      ->required()
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000'000}));
  command->add_option("--sequence", arguments->sequence, "tokens of a sample; else the model's")
      ->check(CLI::Range(int64_t{1}, int64_t{100'000'000}));
  command
      ->add_option("--context", arguments->context,
                   "ranks that may share a sequence, at most; else 16 from 32768 tokens on, and 1 below")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}));
  command->add_option("--top", arguments->top, "how many strategies to show")->check(CLI::Range(1, 10000));
  command->add_option("--write", arguments->write, "write the best strategy as a config for `train`");
  command->add_flag("--trainable", arguments->only_trainable, "refuse a model that `train` does not run yet");
  command->add_flag("--json", arguments->wants_json, "print one JSON document");
  command->footer(
      "Without --nodes or --devices: devices against time.\n"
      "Example:\n  ridgeline plan --model gpt-175b --machine frontier --nodes 128 --global-batch 640");
  command->callback([arguments, &exit_code] { exit_code = plan(*arguments); });
}

}  // namespace ridgeline::cli
