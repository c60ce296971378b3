// ridgeline doctor: what of this machine can be used, what is misconfigured, and the fix.
#include <fmt/color.h>
#include <fmt/format.h>
#include <unistd.h>

#include <memory>

#include "cli/commands.h"
#include "cli/find_engine.h"
#include "cli/guarded.h"
#include "cli/print_json.h"
#include "cli/wrapped_text.h"
#include "core/error.h"
#include "doctor/checks.h"
#include "study/processes.h"

namespace ridgeline::cli {
namespace {

using doctor::Finding;
using doctor::Grade;

doctor::EngineFacts ask_engine() {
  std::string engine;
  try {
    engine = find_engine();
  } catch (const Failure& failure) {
    return {.fault = failure.what(), .torch = {}, .devices = {}};
  }
  const study::ProgramEnd end = study::run_to_end({engine, "doctor"});
  if (end.succeeded) return doctor::parse_engine_facts(end.output);
  // A library that it needs is missing, or a driver does not fit: the loader's own words say it best.
  const std::string said = end.errors.substr(0, end.errors.find('\n'));
  return {.fault = fmt::format("{} does not run: {}", engine, said), .torch = {}, .devices = {}};
}

nlohmann::json to_json(const std::vector<Finding>& findings, int64_t problems) {
  nlohmann::json document = {{"problems", problems}, {"findings", nlohmann::json::array()}};
  for (const Finding& finding : findings) {
    document["findings"].push_back({{"grade", doctor::to_string(finding.grade)},
                                    {"subject", finding.subject},
                                    {"text", finding.text},
                                    {"advice", finding.advice}});
  }
  return document;
}

void print(const std::vector<Finding>& findings) {
  const bool colour = isatty(STDOUT_FILENO) != 0;
  constexpr size_t kIndent = 20;
  for (const Finding& finding : findings) {
    fmt::text_style style;
    if (colour && finding.grade == Grade::note) style = fg(fmt::terminal_color::yellow);
    if (colour && finding.grade == Grade::problem) style = fg(fmt::terminal_color::red);
    const std::string grade = fmt::format("{:8}", doctor::to_string(finding.grade));
    fmt::print("{} {:10} ", colour ? fmt::format(style, "{}", grade) : grade, finding.subject);
    print_wrapped(finding.text, kIndent, kIndent);
    if (finding.advice.empty()) continue;
    fmt::print("{:{}}-> ", "", kIndent);
    print_wrapped(finding.advice, kIndent + 3, kIndent + 3);
  }
}

int run(bool json) {
  const std::vector<Finding> findings = doctor::check_all(doctor::this_host(), ask_engine());
  int64_t problems = 0;
  for (const Finding& finding : findings) problems += finding.grade == Grade::problem ? 1 : 0;
  if (json) {
    print_json(to_json(findings, problems));
  } else {
    print(findings);
  }
  return problems == 0 ? kDone : kFailed;
}

}  // namespace

void add_doctor_command(CLI::App& program, int& exit_code) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command =
      program.add_subcommand("doctor", "What of this machine can be used, what is misconfigured, and the fix");
  command->add_flag("--json", *json, "print one JSON document");
  command->footer(
      "Examples:\n"
      "  ridgeline doctor\n"
      "  srun --ntasks-per-node 1 ridgeline doctor     # each node of an allocation\n"
      "Exit codes: 0 no problem, 1 problems were found.");
  command->callback([json, &exit_code] { exit_code = run(*json); });
}

}  // namespace ridgeline::cli
