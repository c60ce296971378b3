#include "schedule/algorithms.h"

namespace ridgeline::schedule {

Schedule one_chunk_schedule(int64_t stages, int64_t micro_batches) {
  Schedule schedule;
  schedule.stages = stages;
  schedule.micro_batches = micro_batches;
  schedule.actions.resize(stages);
  for (int64_t stage = 0; stage < stages; ++stage) schedule.global_stage.push_back({stage});
  return schedule;
}

void StageWriter::forward(int64_t micro_batch, int64_t chunk) {
  append_message({ActionKind::receive_activation, micro_batch, chunk});
  schedule_.actions[stage_].push_back({ActionKind::forward, micro_batch, chunk});
  append_message({ActionKind::send_activation, micro_batch, chunk});
}

void StageWriter::backward(int64_t micro_batch, int64_t chunk) {
  append_message({ActionKind::receive_gradient, micro_batch, chunk});
  schedule_.actions[stage_].push_back({ActionKind::backward, micro_batch, chunk});
  append_message({ActionKind::send_gradient, micro_batch, chunk});
}

void StageWriter::append_message(const Action& action) {
  if (peer(schedule_, stage_, action)) schedule_.actions[stage_].push_back(action);
}

}  // namespace ridgeline::schedule
