// ridgeline report: what runs and studies have come to so far, finished or not; as text, as a document, or as one HTML
// page.
#include <cmath>
#include <memory>

#include "cli/commands.h"
#include "cli/guarded.h"
#include "cli/print_json.h"
#include "cli/report_page.h"
#include "cli/report_run.h"
#include "cli/report_study.h"
#include "core/error.h"
#include "core/log.h"
#include "core/text.h"
#include "report/loss_chart.h"

namespace ridgeline::cli {
namespace {

using nlohmann::json;
using Kind = ReportSubject::Kind;

struct Arguments {
  std::vector<std::string> subjects;
  std::string output;
  std::string machine;
  std::string program = "ridgeline";
  int64_t devices = 0;
  bool ascii = false;
  bool wants_json = false;
};

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

void print_text(const std::string& name, const Arguments& arguments, const std::vector<report::StepMetrics>& metrics,
                const report::RunSummary& run) {
  fmt::print("{}: {} steps, {} tokens, {} of steps\n\n", name, run.steps, format_count(static_cast<double>(run.tokens)),
             format_duration(run.seconds));
  fmt::print("{}\n", report::loss_chart(metrics, {.ascii = arguments.ascii}));
  if (!run.held_out.empty()) fmt::print("{}\n", report::held_out_table(run.held_out));
  fmt::print("Loss of the last step: {:.4f}\n", run.loss);
  print_speed(run.speed);
  fmt::print("Peak memory of the fullest device: {}\n", format_bytes(static_cast<double>(run.peak_memory)));
  if (run.skipped > 0) fmt::print("Steps without an update, for an fp16 overflow: {}\n", run.skipped);
}

json subject_json(const ReportSubject& subject) {
  if (subject.kind == Kind::study) return study_report_json(subject.path);
  return summary_json(subject.name, read_run(subject.name, subject.path, 2).summary);
}

void print_subject(const ReportSubject& subject, const Arguments& arguments) {
  if (subject.kind == Kind::study) {
    fmt::print("{}", study_report_text(subject.path));
    return;
  }
  const std::vector<report::StepMetrics> metrics = report::read_metrics(subject.path);
  if (metrics.empty()) throw InputError("{}: no step is finished yet; expected a line of metrics.jsonl", subject.name);
  print_text(subject.name, arguments, metrics, report::summarise(metrics));
}

// Without --output: in turn, what each argument comes to.
void print_all(const Arguments& arguments, const std::vector<ReportSubject>& subjects) {
  for (const ReportSubject& subject : subjects) {
    if (subject.kind == Kind::run || subject.kind == Kind::study) continue;
    throw InputError("{}: is neither a run nor a study; add --output FILE.html for a page of it", subject.name);
  }
  if (!arguments.wants_json) {
    for (size_t i = 0; i < subjects.size(); ++i) {
      if (i > 0) fmt::print("\n");
      print_subject(subjects[i], arguments);
    }
    return;
  }
  json documents = json::array();
  for (const ReportSubject& subject : subjects) documents.push_back(subject_json(subject));
  print_json(documents.size() == 1 ? documents.front() : documents);
}

int report(const Arguments& arguments) {
  set_up_log();
  const std::vector<ReportSubject> subjects = report_subjects(arguments.subjects);
  if (arguments.output.empty()) {
    if (!arguments.machine.empty())
      throw InputError("--machine: predictions stand on the page; add --output FILE.html");
    print_all(arguments, subjects);
    return kDone;
  }
  PageRequest request{.subjects = subjects,
                      .machine = {},
                      .program = arguments.program,
                      .devices = arguments.devices,
                      .output = arguments.output};
  if (!arguments.machine.empty()) request.machine = spec::load_machine(arguments.machine);
  write_report_page(request);
  return kDone;
}

}  // namespace

void add_report_command(CLI::App& program, int& exit_code) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      program.add_subcommand("report", "What runs and studies have come to, finished or not; as a page too");
  command
      ->add_option("WHAT", arguments->subjects,
                   "run folders (training.run), study files of `tune`; for a page also configs of `train` and what "
                   "`simulate`, `scale` or `project --json` printed, in a .json file")
      ->required();
  command->add_option("-o,--output", arguments->output, "write one HTML page that opens without a network");
  command->add_option("--machine", arguments->machine,
                      "machine of the runs and configs: the page shows predictions for it beside what was measured");
  command->add_option("--devices", arguments->devices, "devices of the configs; without, one replica's")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}));
  command->add_option("--program", arguments->program,
                      "whose way of running a step is predicted: ridgeline, megatron, deepspeed, deepspeed-bf16");
  CLI::Option* ascii = command->add_flag("--ascii", arguments->ascii, "draw with ASCII characters alone");
  command->add_flag("--json", arguments->wants_json, "print one JSON document (of several: a list)")
      ->excludes(command->get_option("--output"));
  ascii->excludes(command->get_option("--output"));
  command->footer(
      "Examples:\n"
      "  ridgeline report runs/quickstart\n"
      "  ridgeline report runs/a runs/b --output report.html\n"
      "  ridgeline report study.toml runs/best --machine frontier --output report.html");
  command->callback([arguments, &exit_code] { exit_code = report(*arguments); });
}

}  // namespace ridgeline::cli
