// Evaluation: every stage runs the forwards in order; nothing is kept for a backward.
#include "schedule/algorithms.h"

namespace ridgeline::schedule {

Schedule forward_only(int64_t stages, int64_t micro_batches) {
  Schedule schedule = one_chunk_schedule(stages, micro_batches);
  schedule.has_backward = false;
  for (int64_t stage = 0; stage < stages; ++stage) {
    StageWriter writer(schedule, stage);
    for (int64_t micro_batch = 0; micro_batch < micro_batches; ++micro_batch) writer.forward(micro_batch);
  }
  return schedule;
}

}  // namespace ridgeline::schedule
