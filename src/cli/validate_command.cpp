// ridgeline validate: predictions beside recorded runs.
#include <memory>

#include "cli/commands.h"
#include "cli/guarded.h"
#include "cli/print_json.h"
#include "cli/validate_full_runs.h"
#include "core/error.h"
#include "core/text.h"
#include "simulate/measured_memory.h"
#include "simulate/measured_scaling.h"
#include "simulate/validation.h"

namespace ridgeline::cli {
namespace {

using nlohmann::json;

struct Arguments {
  std::string measured;
  std::string full_runs;
  std::string machine;
  std::string unknown_recompute;
  bool wants_rows = false;
  bool wants_json = false;
};

json optional_number(const std::optional<double>& value) { return value ? json(*value) : json(); }

json describe(const simulate::Accuracy& accuracy) {
  return {{"source", accuracy.source},
          {"rows", accuracy.rows},
          {"predicted", accuracy.predicted},
          {"mean_error", accuracy.predicted > 0 ? json(accuracy.mean_error) : json()},
          {"mean_absolute_error", accuracy.predicted > 0 ? json(accuracy.mean_absolute_error) : json()},
          {"p95_absolute_error", accuracy.predicted > 0 ? json(accuracy.p95_absolute_error) : json()},
          {"kendall_tau", optional_number(accuracy.kendall_tau)},
          {"regret", optional_number(accuracy.regret)},
          {"memory_mean_error", optional_number(accuracy.memory_mean_error)},
          {"memory_mean_absolute_error", optional_number(accuracy.memory_mean_absolute_error)}};
}

json describe(const simulate::ValidatedRun& run) {
  json row = {{"label", run.run.label}, {"source", run.run.source}};
  if (!run.prediction) {
    row["why_not"] = run.run.why_not;
    return row;
  }
  if (!run.run.assumed.empty()) row["assumed"] = run.run.assumed;
  row["measured_seconds"] = run.run.step_seconds;
  row["predicted_seconds"] = run.prediction->step_seconds;
  row["error"] = run.error();
  row["machine"] = run.run.machine;
  if (run.run.peak_bytes > 0) {
    row["measured_peak_bytes"] = run.run.peak_bytes;
    row["predicted_peak_bytes"] = run.predicted_peak;
    row["memory_error"] = run.memory_error();
  }
  row["hardware_tflops_per_device"] = run.prediction->hardware_tflops_per_device;
  return row;
}

std::string percent(const std::optional<double>& value) { return value ? fmt::format("{:.1f} %", 100 * *value) : "-"; }

json describe(const simulate::MeasuredMemory& row) {
  json document = {{"label", row.label}, {"source", row.source}};
  if (!row.why_not.empty()) {
    document["why_not"] = row.why_not;
    return document;
  }
  document["measured_bytes"] = row.peak;
  document["predicted_bytes"] = row.predicted_peak;
  document["measured_allocated_bytes"] = row.allocated;
  document["predicted_allocated_bytes"] = row.predicted_allocated;
  document["measured_reserved_bytes"] = row.reserved;
  document["predicted_reserved_bytes"] = {row.predicted_low, row.predicted_high};
  document["error"] = row.error();
  return document;
}

json describe(const simulate::MeasuredScaling& row) {
  json document = {{"label", row.label}, {"source", row.source}};
  if (!row.why_not.empty()) {
    document["why_not"] = row.why_not;
    return document;
  }
  document["measured_efficiency"] = row.efficiency;
  document["predicted_efficiency"] = row.predicted;
  document["error"] = row.error();
  return document;
}

std::string line(const simulate::MeasuredScaling& row) {
  if (!row.why_not.empty()) return fmt::format("{:60.60}  not predicted: {}", row.label, row.why_not);
  return fmt::format("{:60.60}  measured {:5.1f} %  predicted {:5.1f} %  {:+5.1f} points", row.label,
                     100 * row.efficiency, 100 * row.predicted, 100 * row.error());
}

std::string line(const simulate::ValidatedRun& run) {
  if (!run.prediction) return fmt::format("{:60.60}  not predicted: {}", run.run.label, run.run.why_not);
  const std::string memory = run.run.peak_bytes > 0 ? fmt::format(", memory {:+.1f} %", 100 * run.memory_error()) : "";
  return fmt::format("{:60.60}  measured {:10.4g} s  predicted {:10.4g} s  {:+6.1f} %{}", run.run.label,
                     run.run.step_seconds, run.prediction->step_seconds, 100 * run.error(), memory);
}

std::string line(const simulate::MeasuredMemory& row) {
  if (!row.why_not.empty()) return fmt::format("{:60.60}  not predicted: {}", row.label, row.why_not);
  return fmt::format(
      "{:60.60}  between steps {} predicted {}, peak {} predicted {}  {:+6.1f} %, reserved {} predicted "
      "{} to {}",
      row.label, format_bytes(row.allocated), format_bytes(row.predicted_allocated), format_bytes(row.peak),
      format_bytes(row.predicted_peak), 100 * row.error(), format_bytes(row.reserved), format_bytes(row.predicted_low),
      format_bytes(row.predicted_high));
}

void print_table(const std::vector<simulate::Accuracy>& accuracies) {
  fmt::print("{:48} {:>6} {:>9} {:>8} {:>8} {:>8} {:>6} {:>8}\n", "source", "rows", "predicted", "mean", "absolute",
             "p95", "tau", "regret");
  for (const simulate::Accuracy& accuracy : accuracies) {
    if (accuracy.predicted == 0) {
      fmt::print("{:48.48} {:6} {:9}\n", accuracy.source, accuracy.rows, 0);
      continue;
    }
    fmt::print("{:48.48} {:6} {:9} {:>8} {:>8} {:>8} {:>6} {:>8}\n", accuracy.source, accuracy.rows, accuracy.predicted,
               fmt::format("{:+.1f} %", 100 * accuracy.mean_error), percent(accuracy.mean_absolute_error),
               percent(accuracy.p95_absolute_error),
               accuracy.kendall_tau ? fmt::format("{:.2f}", *accuracy.kendall_tau) : "-", percent(accuracy.regret));
    if (!accuracy.memory_mean_absolute_error) continue;
    fmt::print("{:48} {:>6} {:>9} {:>8} {:>8}\n", "  its peaks of memory", "", "",
               fmt::format("{:+.1f} %", 100 * *accuracy.memory_mean_error), percent(accuracy.memory_mean_absolute_error));
  }
}

template <typename Row>
int report(const Arguments& arguments, const std::vector<Row>& rows) {
  std::vector<simulate::Accuracy> accuracies = simulate::accuracies(rows);
  if (!arguments.wants_json) {
    if (arguments.wants_rows) {
      for (const Row& row : rows) fmt::print("{}\n", line(row));
    }
    print_table(accuracies);
    return kDone;
  }
  json document;
  document["all"] = describe(accuracies.back());
  accuracies.pop_back();
  document["sources"] = json::array();
  for (const auto& accuracy : accuracies) document["sources"].push_back(describe(accuracy));
  if (arguments.wants_rows) {
    document["rows"] = json::array();
    for (const Row& row : rows) document["rows"].push_back(describe(row));
  }
  print_json(document);
  return kDone;
}

simulate::MeasuredOptions options_of(const Arguments& arguments) {
  simulate::MeasuredOptions options;
  for (const auto recompute : {spec::Recompute::none, spec::Recompute::selective, spec::Recompute::full}) {
    if (arguments.unknown_recompute == to_string(recompute)) options.unknown_recompute = recompute;
  }
  return options;
}

int validate(const Arguments& arguments) {
  if (arguments.measured.empty() == arguments.full_runs.empty()) {
    throw InputError("validate: expected one of --measured and --full-runs");
  }
  if (!arguments.full_runs.empty()) return validate_full_runs(arguments.full_runs, arguments.wants_json);
  const simulate::Table table = simulate::read_table(arguments.measured);
  if (simulate::is_memory_table(table)) return report(arguments, simulate::validate_memory(table, arguments.machine));
  if (simulate::is_scaling_table(table)) return report(arguments, simulate::validate_scaling(table, arguments.machine));
  return report(arguments, simulate::validate_runs(simulate::measured_runs(table, options_of(arguments)), arguments.machine));
}

}  // namespace

void add_validate_command(CLI::App& program, int& exit_code) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("validate", "Compare predictions with recorded runs");
  command->add_option("--measured", arguments->measured, "CSV of runs, columns as in validation/throughput.csv");
  command->add_option("--full-runs", arguments->full_runs,
                      "CSV of whole trainings, columns as in validation/full_runs.csv");
  command->add_option("--machine", arguments->machine, "machine of all rows; else the one that each row names");
  command
      ->add_option("--unknown-recompute", arguments->unknown_recompute,
                   "what rows recompute that do not say it; else they are not predicted")
      ->check(CLI::IsMember({"none", "selective", "full"}));
  command->add_flag("--rows", arguments->wants_rows, "each run, not the sources alone");
  command->add_flag("--json", arguments->wants_json, "print one JSON document");
  command->footer(
      "Examples:\n  ridgeline validate --measured validation/throughput.csv --rows\n"
      "  ridgeline validate --full-runs validation/full_runs.csv");
  command->callback([arguments, &exit_code] { exit_code = validate(*arguments); });
}

}  // namespace ridgeline::cli
