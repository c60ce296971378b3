#include "schedule/actions.h"

#include "core/error.h"
#include "schedule/algorithms.h"

namespace ridgeline::schedule {
namespace {

void require_sizes(int64_t stages, int64_t micro_batches) {
  if (stages < 1) throw InputError("strategy.pipeline = {}: a pipeline has at least 1 stage", stages);
  if (micro_batches < 1) {
    throw InputError(
        "a step of {} micro-batches cannot be scheduled: expected at least 1; raise strategy.global_batch or lower "
        "strategy.micro_batch",
        micro_batches);
  }
}

}  // namespace

Schedule make_schedule(spec::ScheduleKind kind, int64_t stages, int64_t micro_batches) {
  require_sizes(stages, micro_batches);
  switch (kind) {
    case spec::ScheduleKind::gpipe:
      return gpipe(stages, micro_batches);
    case spec::ScheduleKind::one_f_one_b:
      return one_f_one_b(stages, micro_batches);
  }
  throw InternalError("unknown schedule kind {}", static_cast<int>(kind));
}

Schedule make_forward_schedule(int64_t stages, int64_t micro_batches) {
  require_sizes(stages, micro_batches);
  return forward_only(stages, micro_batches);
}

std::optional<Place> holder(const Schedule& schedule, int64_t global_stage) {
  if (global_stage < 0 || global_stage >= schedule.global_stages()) return std::nullopt;
  // Where chunks go round the stages, as in most schedules; else wherever the table says.
  const Place usual{global_stage % schedule.stages, global_stage / schedule.stages};
  if (schedule.global_stage[usual.stage][usual.chunk] == global_stage) return usual;
  for (int64_t stage = 0; stage < schedule.stages; ++stage) {
    for (int64_t chunk = 0; chunk < schedule.chunks_per_stage; ++chunk) {
      if (schedule.global_stage[stage][chunk] == global_stage) return Place{stage, chunk};
    }
  }
  return std::nullopt;
}

std::optional<int64_t> peer(const Schedule& schedule, int64_t stage, const Action& action) {
  const int64_t here = schedule.global_stage[stage][action.chunk];
  std::optional<Place> other;
  switch (action.kind) {
    case ActionKind::send_activation:
    case ActionKind::receive_gradient:
      other = holder(schedule, here + 1);
      break;
    case ActionKind::receive_activation:
    case ActionKind::send_gradient:
      other = holder(schedule, here - 1);
      break;
    default:
      break;
  }
  if (!other || other->stage == stage) return std::nullopt;
  return other->stage;
}

bool is_send(ActionKind kind) { return kind == ActionKind::send_activation || kind == ActionKind::send_gradient; }

bool is_receive(ActionKind kind) {
  return kind == ActionKind::receive_activation || kind == ActionKind::receive_gradient;
}

std::string to_string(ActionKind kind) {
  switch (kind) {
    case ActionKind::forward:
      return "forward";
    case ActionKind::backward:
      return "backward";
    case ActionKind::backward_input:
      return "backward_input";
    case ActionKind::backward_weight:
      return "backward_weight";
    case ActionKind::send_activation:
      return "send_activation";
    case ActionKind::receive_activation:
      return "receive_activation";
    case ActionKind::send_gradient:
      return "send_gradient";
    case ActionKind::receive_gradient:
      return "receive_gradient";
  }
  throw InternalError("unknown action kind {}", static_cast<int>(kind));
}

std::string to_string(const Action& action) {
  return fmt::format("{}(micro_batch {}, chunk {})", to_string(action.kind), action.micro_batch, action.chunk);
}

}  // namespace ridgeline::schedule
