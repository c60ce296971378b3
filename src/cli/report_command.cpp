// ridgeline report: what a run has come to so far, from its metrics.jsonl, finished or not.
#include <cmath>
#include <filesystem>
#include <memory>

#include "cli/commands.h"
#include "cli/guarded.h"
#include "cli/print_json.h"
#include "core/error.h"
#include "core/text.h"
#include "report/loss_chart.h"
#include "report/summary.h"

namespace ridgeline::cli {
namespace {

using nlohmann::json;

struct Arguments {
  std::string run;
  bool ascii = false;
  bool wants_json = false;
};

json number(double value) { return std::isfinite(value) ? json(value) : json(); }
json number(const std::optional<double>& value) { return value ? number(*value) : json(); }

void print_document(const Arguments& arguments, const report::RunSummary& run) {
  json held_out = json::array();
  for (const report::HeldOut& row : run.held_out) {
    held_out.push_back({{"step", row.step},
                        {"tokens", row.tokens},
                        {"loss", number(row.training_loss)},
                        {"validation_loss", number(row.loss)},
                        {"perplexity", number(row.perplexity())}});
  }
  print_json({{"run", arguments.run},
              {"steps", run.steps},
              {"tokens", run.tokens},
              {"seconds", run.seconds},
              {"loss", number(run.loss)},
              {"skipped", run.skipped},
              {"peak_memory", run.peak_memory},
              {"median",
               {{"first_step", run.speed.first_step},
                {"last_step", run.speed.last_step},
                {"step_seconds", number(run.speed.step_seconds)},
                {"tokens_per_second", number(run.speed.tokens_per_second)},
                {"tflops_per_device", number(run.speed.tflops_per_device)},
                {"mfu", number(run.speed.mfu)},
                {"hfu", number(run.speed.hfu)}}},
              {"held_out", held_out}});
}

std::string share(const std::optional<double>& value) {
  return value ? fmt::format("{:.1f} %", 100.0 * *value) : "unknown: the device's peak is not known";
}

void print_speed(const report::Speed& speed) {
  fmt::print("Speed, medians of steps {} to {}:\n", speed.first_step, speed.last_step);
  fmt::print("  {} tokens/s, {} a step\n", speed.tokens_per_second ? format_count(*speed.tokens_per_second) : "-",
             format_duration(speed.step_seconds.value_or(NAN)));
  fmt::print("  {} TFLOP/s a device, MFU {}\n",
             speed.tflops_per_device ? fmt::format("{:.3g}", *speed.tflops_per_device) : "-", share(speed.mfu));
}

void print_text(const Arguments& arguments, const std::vector<report::StepMetrics>& metrics,
                const report::RunSummary& run) {
  fmt::print("{}: {} steps, {} tokens, {} of steps\n\n", arguments.run, run.steps,
             format_count(static_cast<double>(run.tokens)), format_duration(run.seconds));
  fmt::print("{}\n", report::loss_chart(metrics, {.ascii = arguments.ascii}));
  if (!run.held_out.empty()) fmt::print("{}\n", report::held_out_table(run.held_out));
  fmt::print("Loss of the last step: {:.4f}\n", run.loss);
  print_speed(run.speed);
  fmt::print("Peak memory of the fullest device: {}\n", format_bytes(static_cast<double>(run.peak_memory)));
  if (run.skipped > 0) fmt::print("Steps without an update, for an fp16 overflow: {}\n", run.skipped);
}

int report_run(const Arguments& arguments) {
  std::error_code ignored;
  const std::filesystem::path path(arguments.run);
  const bool is_folder = std::filesystem::is_directory(path, ignored);
  const std::vector<report::StepMetrics> metrics =
      report::read_metrics(is_folder ? (path / "metrics.jsonl").string() : arguments.run);
  if (metrics.empty()) throw InputError("{}: no step is finished yet; expected a line of metrics.jsonl", arguments.run);
  const report::RunSummary run = report::summarise(metrics);
  if (arguments.wants_json) {
    print_document(arguments, run);
  } else {
    print_text(arguments, metrics, run);
  }
  return kDone;
}

}  // namespace

void add_report_command(CLI::App& program, int& exit_code) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("report", "Losses, speed and memory of a run, finished or not");
  command->add_option("RUN", arguments->run, "run folder (training.run), or its metrics.jsonl")->required();
  command->add_flag("--ascii", arguments->ascii, "draw with ASCII characters alone");
  command->add_flag("--json", arguments->wants_json, "print one JSON document");
  command->footer("Example:\n  ridgeline report runs/quickstart");
  command->callback([arguments, &exit_code] { exit_code = report_run(*arguments); });
}

}  // namespace ridgeline::cli
