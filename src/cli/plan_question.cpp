#include "cli/plan_question.h"

#include <algorithm>
#include <optional>

#include "cli/prediction_output.h"
#include "core/error.h"
#include "core/output_file.h"
#include "core/text.h"

namespace ridgeline::cli {
namespace {

// Tokens of a sample from which on ranks may share it without being asked for: below, other axes divide as well and
// send less.
constexpr int64_t kLongSequence = 32768;

// The fastest that fits, if any.
std::optional<simulate::Prediction> fastest(const simulate::Evaluator& evaluator, const search::Space& space) {
  const search::Ranking ranking = search::rank(evaluator, space, 1);
  if (ranking.best.empty()) return std::nullopt;
  return ranking.best.front();
}

std::optional<Change> more_devices(const PlanQuestion& question, const PlanArguments& arguments, int64_t devices) {
  const spec::Machine& machine = question.machine;
  for (const int64_t factor : {2, 3, 4, 6, 8, 12, 16, 24, 32, 64}) {
    const int64_t more = devices * factor;
    if (machine.nodes > 0 && more > machine.nodes * machine.devices_per_node) break;
    if (const auto best = fastest(question.evaluator, space_of(arguments, question.train.model, more))) {
      return Change{fmt::format("devices {} -> {}", devices, more), more, 0, *best};
    }
  }
  return std::nullopt;
}

std::optional<Change> shorter_sequence(const PlanQuestion& question, const PlanArguments& arguments, int64_t devices) {
  spec::ModelSpec model = question.train.model;
  const int64_t whole = model.sequence;
  for (model.sequence /= 2; model.sequence >= 256; model.sequence /= 2) {
    const simulate::Evaluator evaluator(model, question.machine, question.evaluator.recipe(),
                                        question.evaluator.compute());
    if (const auto best = fastest(evaluator, space_of(arguments, model, devices))) {
      return Change{fmt::format("sequence {} -> {}", whole, model.sequence), 0, model.sequence, *best};
    }
  }
  return std::nullopt;
}

}  // namespace

PlanQuestion question_of(const PlanArguments& arguments) {
  spec::TrainSpec train = load_model(arguments.model);
  if (arguments.sequence > 0) train.model.sequence = arguments.sequence;
  spec::validate(train.model);
  if (arguments.only_trainable) spec::require_trainable(train.model);
  const spec::Machine machine = arguments.machine.load();
  return {train, machine,
          simulate::Evaluator(train.model, machine, arguments.machine.recipe(), train.precision.compute)};
}

search::Space space_of(const PlanArguments& arguments, const spec::ModelSpec& model, int64_t devices) {
  const int64_t unasked = model.sequence >= kLongSequence ? 16 : 1;
  return {.devices = devices,
          .global_batch = arguments.global_batch,
          .most_context = arguments.context > 0 ? arguments.context : unasked};
}

search::Ranking rank(const PlanQuestion& question, const PlanArguments& arguments, int64_t devices, size_t keep) {
  search::Ranking ranking = search::rank(question.evaluator, space_of(arguments, question.train.model, devices), keep);
  if (ranking.considered > 0) return ranking;
  throw InputError(
      "--global-batch {}: no strategy of {} devices divides it; data * micro-batch must, where data = devices / (tensor "
      "* pipeline); use a multiple of {}, or other devices",
      arguments.global_batch, devices, devices);
}

std::vector<Change> changes_that_fit(const PlanQuestion& question, const PlanArguments& arguments, int64_t devices) {
  std::vector<Change> changes;
  if (auto change = more_devices(question, arguments, devices)) changes.push_back(std::move(*change));
  if (auto change = shorter_sequence(question, arguments, devices)) changes.push_back(std::move(*change));
  return changes;
}

void write_config(const PlanArguments& arguments, const PlanQuestion& question, const search::Ranking& ranking,
                  int64_t devices) {
  if (ranking.best.empty()) {
    throw InputError("--write {}: nothing fits on {} devices, the nearest misses by {}; `plan` without --write says what "
                     "would fit",
                     arguments.write, devices, format_bytes(ranking.nearest.front().missing_bytes));
  }
  const auto best = std::find_if(ranking.best.begin(), ranking.best.end(), [&](const auto& prediction) {
    return spec::is_trainable(question.train.model);
  });
  if (best == ranking.best.end()) {
    throw InputError("--write {}: none of the best {} strategies can be trained yet; add --trainable", arguments.write,
                     ranking.best.size());
  }
  spec::TrainSpec train = question.train;
  train.strategy = best->strategy;
  if (train.data.path.empty()) train.data.path = "corpus";
  write_whole_file(arguments.write,
                  fmt::format("# {} on {}: {}\n# Predicted: {} a step. Set data.path and training.* before you train."
                              "\n\n{}",
                              arguments.model, question.machine.name, describe(best->strategy),
                              format_duration(best->step_seconds), spec::to_toml(train)));
}

}  // namespace ridgeline::cli
