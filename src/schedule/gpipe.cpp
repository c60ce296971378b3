// GPipe (Huang et al. 2019, arXiv 1811.06965): all forwards, then all backwards.
//
// In flight on every stage: all micro-batches. Idle share: (p - 1) / (m + p - 1) for p equal stages, m micro-batches.
// Backwards run in the order of the forwards, as in the other schedules, so that gradients are summed in one order.
#include "schedule/algorithms.h"

namespace ridgeline::schedule {

Schedule gpipe(int64_t stages, int64_t micro_batches) {
  Schedule schedule = one_chunk_schedule(stages, micro_batches);
  for (int64_t stage = 0; stage < stages; ++stage) {
    StageWriter writer(schedule, stage);
    for (int64_t micro_batch = 0; micro_batch < micro_batches; ++micro_batch) writer.forward(micro_batch);
    for (int64_t micro_batch = 0; micro_batch < micro_batches; ++micro_batch) writer.backward(micro_batch);
  }
  return schedule;
}

}  // namespace ridgeline::schedule
