#include "cli/tune_progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "cli/prediction_output.h"
#include "core/text.h"

namespace ridgeline::cli {
namespace {

using search::Outcome;

constexpr auto kRedraw = std::chrono::milliseconds(250);

size_t terminal_width() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 20) return 80;
  return size.ws_col;
}

}  // namespace

std::string cost_text(search::Objective goal, double cost) {
  switch (goal) {
    case search::Objective::step_seconds:
      return format_duration(cost);
    case search::Objective::device_tflops:
      return fmt::format("{:.3g} TFLOP/s", search::value_of(goal, cost));
    case search::Objective::tokens_per_node_hour:
      return format_count(search::value_of(goal, cost)) + " tokens/node-hour";
    case search::Objective::joules_per_token:
      return fmt::format("{:.3g} J/token", cost);
  }
  return "";
}

// Dimensions in which points differ; what all share is told once, by the study file.
std::string strategy_text(const study::Problem& problem, size_t point) {
  std::string text;
  const auto& dimensions = problem.points().dimensions();
  for (size_t i = 0; i < dimensions.size(); ++i) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", dimensions[i].name, problem.points().label(point, i));
  }
  return text;
}

bool TuneProgress::can_redraw() {
  const char* terminal = std::getenv("TERM");
  return isatty(STDERR_FILENO) == 1 && terminal != nullptr && std::string_view(terminal) != "dumb";
}

TuneProgress::TuneProgress(const study::Problem& problem, bool is_live, Names names)
    : problem_(problem), is_live_(is_live), names_(names) {}

TuneProgress::~TuneProgress() { erase(); }

void TuneProgress::line(const std::string& text) {
  erase();
  std::fprintf(stderr, "%s\n", text.c_str());
}

void TuneProgress::erase() {
  if (drawn_lines_ == 0) return;
  std::fprintf(stderr, "\x1b[%zuA\r\x1b[J", drawn_lines_);  // up, then all below is cleared
  drawn_lines_ = 0;
}

bool TuneProgress::count(const study::TrialRecord& trial) {
  ++ended_;
  if (trial.outcome != Outcome::ok) {
    failed_ += trial.outcome == Outcome::stopped_early ? 0 : 1;
    return false;
  }
  const double cost = trial.costs.front();
  if (best_cost_ > 0 && cost >= best_cost_) return false;
  best_cost_ = cost;
  return true;
}

void TuneProgress::resumed(const std::vector<study::TrialRecord>& trials) {
  for (const study::TrialRecord& trial : trials) {
    if (trial.has_ended()) count(trial);
  }
  line(fmt::format("going on with {}: {} trials have ended, {} were under way", problem_.file().store, ended_,
                   static_cast<int64_t>(trials.size()) - ended_));
}

void TuneProgress::started(const study::TrialRecord& trial, const search::Point&) {
  if (is_live_ || !problem_.is_measured()) return;
  line(fmt::format("trial {} starts: {}", trial.number, strategy_text(problem_, problem_.point_of(trial))));
}

void TuneProgress::retried(const study::TrialRecord& trial, const std::string& why) {
  line(fmt::format("trial {} is tried again: {}", trial.number, why));
}

void TuneProgress::ended(const study::TrialRecord& trial, const search::Point&) {
  const bool is_best = count(trial);
  const size_t point = problem_.point_of(trial);
  if (trial.outcome != Outcome::ok && trial.outcome != Outcome::stopped_early) {
    std::string missing;
    if (trial.missing_bytes > 0) missing = fmt::format(" (missing {})", format_bytes(trial.missing_bytes));
    line(fmt::format("trial {:4}  {:>14}{}  {}{}", trial.number, search::to_string(trial.outcome), missing,
                     strategy_text(problem_, point), trial.message.empty() ? "" : ": " + trial.message));
    return;
  }
  const double cost = trial.costs.front();
  std::string mark = is_best && names_ == Names::best ? "  best so far" : "";
  if (trial.outcome == Outcome::stopped_early) mark = "  stopped early";
  line(fmt::format("trial {:4}  {:>14}  {}{}", trial.number, cost_text(problem_.file().goals.front(), cost),
                   strategy_text(problem_, point), mark));
}

void TuneProgress::confirming(const study::TrialRecord& trial, int64_t round) {
  line(fmt::format("measuring trial {} again, turn {} of {}", trial.number, round,
                   problem_.file().measure.confirm_rounds));
}

std::string TuneProgress::running_line(const study::MeasuredRun& run, double now) const {
  std::string text = fmt::format("  {:>5}  {:>9}", run.record().trial, format_duration(run.running_seconds(now)));
  const study::RunWatch* watch = run.watch();
  if (watch == nullptr) {
    text += "  in the queue";
  } else if (watch->step_seconds().empty()) {
    text += "  starting    ";
  } else {
    text += fmt::format("  step {:4} {:>9}", watch->step_seconds().size(), format_duration(watch->state().seconds.median));
  }
  return text + "  " + strategy_text(problem_, run.point());
}

void TuneProgress::tick(const std::vector<const study::MeasuredRun*>& running) {
  const auto now = std::chrono::steady_clock::now();
  if (!is_live_ || now - last_draw_ < kRedraw) return;
  last_draw_ = now;
  erase();
  const size_t width = terminal_width();
  std::vector<std::string> lines = {fmt::format(
      "{} ended, {} failed, {} running{}", ended_, failed_, running.size(),
      best_cost_ > 0 && names_ == Names::best ? ", best " + cost_text(problem_.file().goals.front(), best_cost_) : std::string())};
  for (const study::MeasuredRun* run : running) lines.push_back(running_line(*run, study::steady_now()));
  for (const std::string& text : lines) std::fprintf(stderr, "%s\n", text.substr(0, width - 1).c_str());
  drawn_lines_ = lines.size();
  std::fflush(stderr);
}

}  // namespace ridgeline::cli
