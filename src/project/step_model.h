// StepModel: how long the mean step of a training is, on any number of devices and with any batch.
//
// It rests on recorded runs, on a prediction for a machine, or on both: then the prediction says how a step changes
// with devices and batch, and the recorded runs how long one is (measured / predicted is one factor for all). Without a
// machine, recorded runs say nothing of other devices; another batch changes a step by its share of the pipeline's
// slots, (m + (p - 1) / v) of m micro-batches, p stages and v chunks.
//
// A prediction is in doubt by kPlannedDoubt, from its errors on recorded runs of the machine files that are fitted
// (docs/planning.md), by kEstimatedDoubt on a stack whose name begins with "estimate".
#pragma once

#include <memory>
#include <optional>

#include "project/recorded_run.h"
#include "project/step_time.h"
#include "simulate/evaluator.h"

namespace ridgeline::project {

inline constexpr double kPlannedDoubt = 0.10;  // half the range, share of the middle
inline constexpr double kEstimatedDoubt = 0.20;
inline constexpr double kPublishedDoubt = 0.05;
inline constexpr double kScaledDoubt = 0.05;  // of a measured step, moved to other devices by a prediction

class StepModel {
 public:
  // Of a prediction. `spec.strategy.data` is derived; other devices change `data` alone.
  StepModel(const spec::TrainSpec& spec, const spec::Machine& machine, const cost::Recipe& recipe);
  // Of a step that others measured, within kPublishedDoubt.
  StepModel(const spec::TrainSpec& spec, double published_seconds);
  // Of recorded runs of the same work; the machine, where it is known, for other devices and batches.
  explicit StepModel(const std::vector<RecordedRun>& runs);
  void predict_with(const spec::Machine& machine, const cost::Recipe& recipe);

  const spec::TrainSpec& spec() const { return spec_; }
  int64_t devices() const { return spec_.strategy.ranks(); }  // of the runs, or of the strategy
  bool is_measured() const { return measured_.has_value(); }
  const std::optional<StepTime>& measured() const { return measured_; }
  bool can_predict() const { return evaluator_ != nullptr; }
  // Predicted seconds on the runs' own devices over measured ones, less one; nothing without both.
  std::optional<double> prediction_error() const;

  // Whether the layout divides so many devices and this batch.
  bool is_legal(int64_t devices, int64_t global_batch) const;
  // Whether a prediction says that it fits in a device's memory; true without a machine.
  bool fits(int64_t devices, int64_t global_batch);
  // Mean seconds of a step. Throws InputError where it is not legal, or other devices need a machine.
  Range seconds(int64_t devices, int64_t global_batch);

 private:
  spec::Strategy strategy(int64_t devices, int64_t global_batch) const;
  double predicted(int64_t devices, int64_t global_batch);

  spec::TrainSpec spec_;
  std::optional<StepTime> measured_;
  std::shared_ptr<simulate::Evaluator> evaluator_;
  double doubt_ = 0;                     // of the prediction
  std::optional<double> own_predicted_;  // on the runs' devices
};

}  // namespace ridgeline::project
