#include "schedule/actions.h"

#include "core/error.h"
#include "schedule/algorithms.h"
#include "schedule/file.h"

namespace ridgeline::schedule {
namespace {

// (micro-batch, global stage) pairs of a schedule: some GiB of actions.
constexpr int64_t most_pieces = 50'000'000;

void require_sizes(int64_t stages, int64_t micro_batches) {
  if (stages < 1) throw InputError("strategy.pipeline = {}: a pipeline has at least 1 stage", stages);
  if (micro_batches < 1) {
    throw InputError(
        "a step of {} micro-batches cannot be scheduled: expected at least 1; raise strategy.global_batch or lower "
        "strategy.micro_batch",
        micro_batches);
  }
  if (micro_batches > most_pieces / stages) {
    throw InputError(
        "a step of {} micro-batches on {} pieces of the model has too long a schedule: expected at most {} of both "
        "together; raise strategy.micro_batch, or use more data parallel ranks",
        micro_batches, stages, most_pieces);
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
    case spec::ScheduleKind::zero_bubble:
      return zero_bubble(stages, micro_batches);
    case spec::ScheduleKind::zero_bubble_v:
      return zero_bubble_v(stages, micro_batches, std::vector<Work>(2 * stages));
  }
  throw InternalError("unknown schedule kind {}", static_cast<int>(kind));
}

Schedule make_schedule(const spec::Strategy& strategy, const std::vector<Work>& work) {
  const int64_t stages = strategy.pipeline, micro_batches = strategy.micro_batches();
  require_sizes(stages * strategy.virtual_pipeline, micro_batches);
  if (!strategy.schedule_file.empty()) return read_schedule(strategy);
  if (strategy.is_vee() && !work.empty()) return zero_bubble_v(stages, micro_batches, work);
  if (strategy.is_vee()) return make_schedule(strategy.schedule, stages, micro_batches);
  if (strategy.virtual_pipeline > 1) return make_interleaved_schedule(stages, strategy.virtual_pipeline, micro_batches);
  return make_schedule(strategy.schedule, stages, micro_batches);
}

Schedule make_forward_schedule(const spec::Strategy& strategy, int64_t micro_batches) {
  require_sizes(strategy.pipeline, micro_batches);
  return forward_only(chunk_places(strategy), micro_batches);
}

std::vector<std::vector<int64_t>> chunk_places(const spec::Strategy& strategy) {
  return strategy.is_vee() ? vee_places(strategy.pipeline) : round_places(strategy.pipeline, strategy.virtual_pipeline);
}

std::optional<Place> holder(const Schedule& schedule, int64_t global_stage) {
  if (global_stage < 0 || global_stage >= schedule.global_stages()) return std::nullopt;
  // Where chunks go round the stages or back, as in most schedules; else wherever the table says.
  const Place usual{global_stage % schedule.stages, global_stage / schedule.stages};
  if (schedule.global_stage[usual.stage][usual.chunk] == global_stage) return usual;
  const Place back{schedule.stages - 1 - usual.stage, usual.chunk};
  if (schedule.global_stage[back.stage][back.chunk] == global_stage) return back;
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

std::string trace_name(const Action& action) {
  const char* const kind = [&] {
    switch (action.kind) {
      case ActionKind::forward:
        return "F";
      case ActionKind::backward:
        return "B";
      case ActionKind::backward_input:
        return "BI";
      case ActionKind::backward_weight:
        return "BW";
      case ActionKind::send_activation:
        return "send F";
      case ActionKind::receive_activation:
        return "receive F";
      case ActionKind::send_gradient:
        return "send B";
      case ActionKind::receive_gradient:
        return "receive B";
    }
    throw InternalError("unknown action kind {}", static_cast<int>(action.kind));
  }();
  return action.chunk == 0 ? fmt::format("{} {}", kind, action.micro_batch)
                           : fmt::format("{} {}.{}", kind, action.micro_batch, action.chunk);
}

std::string to_string(const Action& action) {
  return fmt::format("{}(micro_batch {}, chunk {})", to_string(action.kind), action.micro_batch, action.chunk);
}

}  // namespace ridgeline::schedule
