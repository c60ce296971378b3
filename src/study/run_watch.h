// RunWatch: follows the metrics.jsonl of a run under way, and says when enough of it was seen.
//
//   RunWatch watch(folder + "/run/metrics.jsonl", limits, started_at);
//   switch (watch.look(now, bound)) ...
//
// A trial ends as soon as the median of its steady steps is known well enough (steady_state.h), as soon as it is surely
// too slow to be the best, when a loss is no number, when no step comes any more, and at its deadline.
#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "study/steady_state.h"

namespace ridgeline::study {

struct WatchLimits {
  int64_t least_steps = 8;      // before `enough` and `hopeless`
  double tolerance = 0.02;      // of the median; 0: never `enough`
  double heartbeat_seconds = 300;
  double deadline_seconds = 1200;
};

class RunWatch {
 public:
  enum class Advice { go_on, enough, hopeless, diverged, silent, late };

  // `started_at` and `now`: seconds of any one clock.
  RunWatch(std::string metrics_path, const WatchLimits& limits, double started_at);

  // `bound`: seconds of a step above which it is hopeless.
  Advice look(double now, std::optional<double> bound);

  const std::vector<double>& step_seconds() const { return step_seconds_; }
  const SteadyState& state() const { return state_; }
  double peak_bytes() const { return peak_bytes_; }
  const std::string& fault() const { return fault_; }  // of a metrics file that cannot be read

 private:
  bool read_more();  // whether steps came
  void take(const std::string& line);

  std::string path_;
  WatchLimits limits_;
  double started_at_;
  double last_step_at_;
  std::streamoff offset_ = 0;
  std::vector<double> step_seconds_;
  SteadyState state_;
  double peak_bytes_ = 0;
  bool diverged_ = false;
  std::string fault_;
};

}  // namespace ridgeline::study
