#include "project/step_model.h"

#include <cmath>

#include "core/error.h"

namespace ridgeline::project {
namespace {

StepTime time_of(const std::vector<RecordedRun>& runs) {
  std::vector<std::vector<double>> seconds;
  std::vector<std::string> names;
  for (const RecordedRun& run : runs) {
    seconds.push_back(run.step_seconds);
    names.push_back(run.path);
  }
  return step_time(seconds, names);
}

double slots(const spec::Strategy& strategy) {
  return static_cast<double>(strategy.micro_batches()) +
         static_cast<double>(strategy.pipeline - 1) / static_cast<double>(strategy.virtual_pipeline);
}

}  // namespace

StepModel::StepModel(const spec::TrainSpec& spec, const spec::Machine& machine, const cost::Recipe& recipe)
    : spec_(spec) {
  predict_with(machine, recipe);
}

StepModel::StepModel(const spec::TrainSpec& spec, double published_seconds) : spec_(spec) {
  measured_.emplace();
  measured_->median = published_seconds;
  measured_->seconds = {published_seconds * (1 - kPublishedDoubt), published_seconds,
                        published_seconds * (1 + kPublishedDoubt)};
}

StepModel::StepModel(const std::vector<RecordedRun>& runs) : spec_(runs.front().spec) {
  require_same_work(runs);
  measured_ = time_of(runs);
}

void StepModel::predict_with(const spec::Machine& machine, const cost::Recipe& recipe) {
  evaluator_ = std::make_shared<simulate::Evaluator>(spec_.model, machine, recipe, spec_.precision.compute);
  doubt_ = machine.stack.name.starts_with("estimate") ? kEstimatedDoubt : kPlannedDoubt;
  own_predicted_ = predicted(devices(), spec_.strategy.global_batch);
}

std::optional<double> StepModel::prediction_error() const {
  if (!measured_ || !own_predicted_) return std::nullopt;
  return *own_predicted_ / measured_->seconds.middle - 1;
}

spec::Strategy StepModel::strategy(int64_t devices, int64_t global_batch) const {
  spec::Strategy strategy = spec_.strategy;
  strategy.global_batch = global_batch;
  spec::derive_data(strategy, spec_.model, devices);
  return strategy;
}

bool StepModel::is_legal(int64_t devices, int64_t global_batch) const {
  spec::Strategy strategy = spec_.strategy;
  const int64_t replica = strategy.tensor * strategy.pipeline;
  if (devices % replica != 0 || global_batch < 1) return false;
  strategy.data = devices / replica;
  strategy.global_batch = global_batch;
  return spec::is_legal(strategy, spec_.model);
}

bool StepModel::fits(int64_t devices, int64_t global_batch) {
  if (!evaluator_) return true;
  const simulate::StageMemory memory = evaluator_->fullest(strategy(devices, global_batch));
  return evaluator_->memory().fit(memory) != simulate::Fit::does_not_fit;
}

double StepModel::predicted(int64_t devices, int64_t global_batch) {
  return evaluator_->predict(strategy(devices, global_batch)).step_seconds;
}

Range StepModel::seconds(int64_t devices, int64_t global_batch) {
  const spec::Strategy asked = strategy(devices, global_batch);
  if (!measured_) {
    const double middle = predicted(devices, global_batch);
    return {middle * (1 - doubt_), middle, middle * (1 + doubt_)};
  }
  const bool is_own = devices == this->devices() && global_batch == spec_.strategy.global_batch;
  if (is_own) return measured_->seconds;
  if (!evaluator_ && devices != this->devices()) {
    throw InputError(
        "{} devices: the recorded steps are of {} devices; add --machine, so that a prediction says how a "
        "step changes with them",
        devices, this->devices());
  }
  const double factor =
      evaluator_ ? predicted(devices, global_batch) / *own_predicted_ : slots(asked) / slots(spec_.strategy);
  Range range = measured_->seconds * factor;
  const auto widened = [&](double end) {
    const double own = end - range.middle, moved = kScaledDoubt * range.middle;
    return range.middle + std::copysign(std::sqrt(own * own + moved * moved), own);
  };
  return {widened(range.low), range.middle, widened(range.high)};
}

}  // namespace ridgeline::project
