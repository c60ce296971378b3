#include "study/run_watch.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "report/metrics.h"

namespace ridgeline::study {
namespace {

constexpr std::streamoff kMostRead = 1 << 20;  // of a file at a time

}  // namespace

RunWatch::RunWatch(std::string metrics_path, const WatchLimits& limits, double started_at)
    : path_(std::move(metrics_path)), limits_(limits), started_at_(started_at), last_step_at_(started_at) {}

RunWatch::Advice RunWatch::look(double now, std::optional<double> bound) {
  if (read_more()) {
    last_step_at_ = now;
    state_ = steady_state(step_seconds_);
  }
  if (diverged_) return Advice::diverged;
  const bool is_long_enough = static_cast<int64_t>(state_.steps) >= limits_.least_steps;
  if (is_long_enough && limits_.tolerance > 0 && state_.is_tight(limits_.tolerance)) return Advice::enough;
  if (bound && surely_above(step_seconds_, state_.dropped, *bound)) return Advice::hopeless;
  if (now - started_at_ > limits_.deadline_seconds) return Advice::late;
  if (now - last_step_at_ > limits_.heartbeat_seconds) return Advice::silent;
  return Advice::go_on;
}

bool RunWatch::read_more() {
  if (!fault_.empty()) return false;
  std::ifstream stream(path_, std::ios::binary);
  if (!stream) return false;
  stream.seekg(offset_);
  std::string text(static_cast<size_t>(kMostRead), '\0');
  stream.read(text.data(), kMostRead);
  text.resize(static_cast<size_t>(std::max<std::streamsize>(stream.gcount(), 0)));
  const size_t before = step_seconds_.size();
  size_t begin = 0;
  for (size_t end; fault_.empty() && (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    take(text.substr(begin, end - begin));
  }
  offset_ += static_cast<std::streamoff>(begin);  // a line without an end is still being written
  return step_seconds_.size() > before;
}

void RunWatch::take(const std::string& line) {
  try {
    const report::StepMetrics metrics = report::parse_metrics(line, path_);
    if (!(metrics.step_seconds > 0) || !std::isfinite(metrics.step_seconds)) {
      throw InputError("{}: step_seconds = {}: expected a positive number", path_, metrics.step_seconds);
    }
    step_seconds_.push_back(metrics.step_seconds);
    peak_bytes_ = std::max(peak_bytes_, static_cast<double>(metrics.peak_memory));
    // A skipped step of fp16 may overflow; its loss is still a number.
    diverged_ = diverged_ || !std::isfinite(metrics.loss);
  } catch (const InputError& error) {
    fault_ = error.what();
  }
}

}  // namespace ridgeline::study
