#include "project/eta.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/text.h"
#include "project/step_time.h"

namespace ridgeline::project {
namespace {

constexpr double kGrowth = 1.1;  // the mean is judged anew when there are so many times the steps
constexpr size_t kFirstEstimate = 2 * kLeastSteadySteps;

// How many multiples of `every` lie in (done, total].
int64_t times_left(int64_t every, int64_t done, int64_t total) { return every > 0 ? total / every - done / every : 0; }

}  // namespace

Eta::Eta(const spec::TrainSpec& spec, std::optional<double> planned_step_seconds)
    : total_steps_(spec.training.steps),
      evaluation_every_(spec.evaluation.every),
      checkpoint_every_(spec.checkpoint.every),
      saves_at_end_(spec.checkpoint.at_end),
      planned_(planned_step_seconds),
      next_estimate_(kFirstEstimate) {}

void Eta::add(const report::StepMetrics& metrics) {
  seconds_.push_back(metrics.step_seconds);
  step_number_ = metrics.step;
  const double save = metrics.save_seconds.value_or(0);
  pauses_ += std::max(0.0, metrics.pause_seconds.value_or(0) - save - last_evaluation_);
  last_evaluation_ = metrics.evaluation_seconds.value_or(0);
  if (metrics.evaluation_seconds) {
    evaluations_ += last_evaluation_;
    ++evaluation_count_;
  }
  if (metrics.save_seconds) {
    saves_ += save;
    ++save_count_;
  }
  if (seconds_.size() >= next_estimate_) estimate();
}

void Eta::estimate() {
  next_estimate_ = std::max(seconds_.size() + 1, static_cast<size_t>(kGrowth * static_cast<double>(seconds_.size())));
  try {
    step_ = step_time(seconds_, "this run").seconds;
  } catch (const InputError&) {
    // All of it still looks like warm-up: later.
  }
}

std::optional<double> Eta::seconds_left() const {
  if (!step_) return std::nullopt;
  const double pause = pauses_ / static_cast<double>(seconds_.size());
  double left = (step_->middle + pause) * static_cast<double>(total_steps_ - step_number_);
  if (evaluation_count_ > 0) {
    left += evaluations_ / static_cast<double>(evaluation_count_) *
            static_cast<double>(times_left(evaluation_every_, step_number_, total_steps_));
  }
  if (save_count_ > 0) {
    const bool has_last = saves_at_end_ && (checkpoint_every_ == 0 || total_steps_ % checkpoint_every_ != 0);
    left += saves_ / static_cast<double>(save_count_) *
            static_cast<double>(times_left(checkpoint_every_, step_number_, total_steps_) + (has_last ? 1 : 0));
  }
  return left;
}

std::optional<std::string> Eta::departure() {
  if (!planned_ || !step_ || seconds_.size() < kSettledSteps) return std::nullopt;
  const bool departs = step_->low > (1 + kDeparture) * *planned_ || step_->high < (1 - kDeparture) * *planned_;
  if (departs == departed_) return std::nullopt;
  departed_ = departs;
  const double off = 100 * (step_->middle / *planned_ - 1);
  if (departs) {
    return fmt::format("the run departs from its plan: a step takes {}, {:+.0f} % of the {} that were predicted",
                       format_duration(step_->middle), off, format_duration(*planned_));
  }
  return fmt::format("the run keeps to its plan again: a step takes {}, {:+.0f} % of what was predicted",
                     format_duration(step_->middle), off);
}

}  // namespace ridgeline::project
