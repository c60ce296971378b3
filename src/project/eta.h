// Eta: the seconds that a run in progress has left, and whether it keeps to its plan. By the same estimate of the mean
// step (project/step_time.h) as a projection before the run.
//
//   Eta eta(spec, predicted_step_seconds);
//   eta.add(metrics);                      // each step of this start
//   eta.seconds_left();                    // nothing in the first steps
//   if (auto said = eta.departure()) ...   // a sentence, once when it departs and once when it is back
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "project/range.h"
#include "report/metrics.h"
#include "spec/train.h"

namespace ridgeline::project {

inline constexpr double kDeparture = 0.10;   // of the planned step
inline constexpr size_t kSettledSteps = 50;  // before which nothing is said of the plan

class Eta {
 public:
  // `planned_step_seconds`: the prediction for this machine, where it is known.
  Eta(const spec::TrainSpec& spec, std::optional<double> planned_step_seconds);

  void add(const report::StepMetrics& metrics);
  std::optional<double> seconds_left() const;
  // The run departs where the whole range of its mean step lies more than kDeparture off the plan.
  std::optional<std::string> departure();

 private:
  void estimate();

  int64_t total_steps_, evaluation_every_, checkpoint_every_;
  bool saves_at_end_;
  std::optional<double> planned_;
  std::vector<double> seconds_;
  size_t next_estimate_;       // the number of steps at which the mean is judged anew
  std::optional<Range> step_;  // mean
  int64_t step_number_ = 0;
  double pauses_ = 0;  // beside evaluations and saves, in all
  double evaluations_ = 0, saves_ = 0;
  int64_t evaluation_count_ = 0, save_count_ = 0;
  double last_evaluation_ = 0;  // of the step before
  bool departed_ = false;
};

}  // namespace ridgeline::project
