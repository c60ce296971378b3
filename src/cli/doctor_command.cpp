// ridgeline doctor: what of this machine can be used, what is misconfigured, and the fix.
#include <fmt/color.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <memory>
#include <sstream>

#include "cli/commands.h"
#include "cli/find_engine.h"
#include "cli/guarded.h"
#include "cli/print_json.h"
#include "core/error.h"
#include "core/text.h"
#include "doctor/checks.h"

namespace ridgeline::cli {
namespace {

using doctor::Finding;
using doctor::Grade;

std::string shell_word(const std::string& word) {
  std::string text = "'";
  for (const char letter : word) text += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return text + "'";
}

doctor::EngineFacts ask_engine() {
  std::string engine;
  try {
    engine = find_engine();
  } catch (const Failure& failure) {
    return {.fault = failure.what(), .torch = {}, .devices = {}};
  }
  FILE* pipe = popen((shell_word(engine) + " doctor 2>&1").c_str(), "r");
  if (pipe == nullptr) return {.fault = "cannot start " + engine, .torch = {}, .devices = {}};
  std::string said;
  std::array<char, 4096> part{};
  while (const size_t count = fread(part.data(), 1, part.size(), pipe)) said.append(part.data(), count);
  const int status = pclose(pipe);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return doctor::parse_engine_facts(said);
  // A library that it needs is missing, or a driver does not fit: the loader's own words say it best.
  return {
      .fault = fmt::format("{} does not run: {}", engine, said.substr(0, said.find('\n'))), .torch = {}, .devices = {}};
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

// In lines of at most `width`; all but the first begin with `indent` spaces.
std::string wrapped(const std::string& text, size_t width, size_t indent) {
  std::string out;
  size_t column = 0;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (column > 0 && column + 1 + word.size() > width) {
      out += "\n" + std::string(indent, ' ');
      column = 0;
    } else if (column > 0) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

void print(const std::vector<Finding>& findings) {
  const bool colour = isatty(STDOUT_FILENO) != 0;
  constexpr size_t kIndent = 20;
  for (const Finding& finding : findings) {
    fmt::text_style style;
    if (colour && finding.grade == Grade::note) style = fg(fmt::terminal_color::yellow);
    if (colour && finding.grade == Grade::problem) style = fg(fmt::terminal_color::red);
    const std::string grade = fmt::format("{:8}", doctor::to_string(finding.grade));
    fmt::print("{} {:10} {}\n", colour ? fmt::format(style, "{}", grade) : grade, finding.subject,
               wrapped(finding.text, 80 - kIndent, kIndent));
    if (finding.advice.empty()) continue;
    fmt::print("{:{}}{}\n", "", kIndent, wrapped("-> " + finding.advice, 77 - kIndent, kIndent + 3));
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
