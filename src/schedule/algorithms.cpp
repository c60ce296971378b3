#include "schedule/algorithms.h"

#include <map>
#include <utility>

#include "core/error.h"

namespace ridgeline::schedule {

Schedule one_chunk_schedule(int64_t stages, int64_t micro_batches) {
  return empty_schedule(round_places(stages, 1), micro_batches);
}

Schedule empty_schedule(std::vector<std::vector<int64_t>> global_stage, int64_t micro_batches) {
  Schedule schedule;
  schedule.stages = static_cast<int64_t>(global_stage.size());
  schedule.chunks_per_stage = static_cast<int64_t>(global_stage.front().size());
  schedule.micro_batches = micro_batches;
  schedule.actions.resize(global_stage.size());
  schedule.global_stage = std::move(global_stage);
  return schedule;
}

std::vector<std::vector<int64_t>> round_places(int64_t stages, int64_t chunks) {
  std::vector<std::vector<int64_t>> places(stages);
  for (int64_t stage = 0; stage < stages; ++stage) {
    for (int64_t chunk = 0; chunk < chunks; ++chunk) places[stage].push_back(chunk * stages + stage);
  }
  return places;
}

std::vector<std::vector<int64_t>> vee_places(int64_t stages) {
  std::vector<std::vector<int64_t>> places;
  for (int64_t stage = 0; stage < stages; ++stage) places.push_back({stage, 2 * stages - 1 - stage});
  return places;
}

void StageWriter::forward(int64_t micro_batch, int64_t chunk) {
  append_message({ActionKind::receive_activation, micro_batch, chunk});
  schedule_.actions[stage_].push_back({ActionKind::forward, micro_batch, chunk});
  append_message({ActionKind::send_activation, micro_batch, chunk});
}

void StageWriter::backward(ActionKind kind, int64_t micro_batch, int64_t chunk) {
  append_message({ActionKind::receive_gradient, micro_batch, chunk});
  schedule_.actions[stage_].push_back({kind, micro_batch, chunk});
  append_message({ActionKind::send_gradient, micro_batch, chunk});
}

void StageWriter::backward_weight(int64_t micro_batch, int64_t chunk) {
  schedule_.actions[stage_].push_back({ActionKind::backward_weight, micro_batch, chunk});
}

void StageWriter::compute(const Action& action) {
  switch (action.kind) {
    case ActionKind::forward:
      return forward(action.micro_batch, action.chunk);
    case ActionKind::backward:
    case ActionKind::backward_input:
      return backward(action.kind, action.micro_batch, action.chunk);
    case ActionKind::backward_weight:
      return backward_weight(action.micro_batch, action.chunk);
    default:
      throw InternalError("{} is no compute", to_string(action.kind));
  }
}

void StageWriter::append_message(const Action& action) {
  if (peer(schedule_, stage_, action)) schedule_.actions[stage_].push_back(action);
}

namespace {

// The messages of one stage from one other, as the receiver names them, in the order in which they are sent.
struct Inbox {
  std::vector<Action> receives;
  size_t received = 0;
};

// The receive at the other end of a send.
Action receive_of(const Schedule& schedule, int64_t stage, const Action& send) {
  const bool activation = send.kind == ActionKind::send_activation;
  const int64_t here = schedule.global_stage[stage][send.chunk];
  return {activation ? ActionKind::receive_activation : ActionKind::receive_gradient, send.micro_batch,
          holder(schedule, activation ? here + 1 : here - 1)->chunk};
}

}  // namespace

void order_receives(Schedule& schedule) {
  std::map<std::pair<int64_t, int64_t>, Inbox> inboxes;  // by receiver and sender
  for (int64_t stage = 0; stage < schedule.stages; ++stage) {
    for (const Action& action : schedule.actions[stage]) {
      if (!is_send(action.kind)) continue;
      inboxes[{*peer(schedule, stage, action), stage}].receives.push_back(receive_of(schedule, stage, action));
    }
  }
  for (int64_t stage = 0; stage < schedule.stages; ++stage) {
    StageActions ordered;
    std::vector<bool> done(2 * schedule.chunks_per_stage * schedule.micro_batches, false);
    const auto is_done = [&](const Action& action) {
      const int64_t gradient = action.kind == ActionKind::receive_gradient ? 1 : 0;
      return done[(2 * action.chunk + gradient) * schedule.micro_batches + action.micro_batch];
    };
    for (const Action& action : schedule.actions[stage]) {
      if (!is_receive(action.kind)) {
        ordered.push_back(action);
        continue;
      }
      Inbox& inbox = inboxes[{stage, *peer(schedule, stage, action)}];
      while (!is_done(action)) {
        RIDGELINE_ASSERT(inbox.received < inbox.receives.size());
        ordered.push_back(inbox.receives[inbox.received++]);
        is_done(ordered.back()) = true;
      }
    }
    schedule.actions[stage] = std::move(ordered);
  }
}

}  // namespace ridgeline::schedule
