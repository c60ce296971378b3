// 1F1B (PipeDream-flush; Narayanan et al. 2021, arXiv 2104.04473, section 2.2.1): a stage runs just as many forwards
// ahead as there are stages behind it, then one forward and one backward in turn, then the backwards that are left.
//
// In flight on stage s: min(m, p - s). Idle share as GPipe's: (p - 1) / (m + p - 1).
#include <algorithm>

#include "schedule/algorithms.h"

namespace ridgeline::schedule {

Schedule one_f_one_b(int64_t stages, int64_t micro_batches) {
  Schedule schedule = one_chunk_schedule(stages, micro_batches);
  for (int64_t stage = 0; stage < stages; ++stage) {
    StageWriter writer(schedule, stage);
    const int64_t ahead = std::min(micro_batches, stages - stage - 1);
    for (int64_t micro_batch = 0; micro_batch < ahead; ++micro_batch) writer.forward(micro_batch);
    for (int64_t micro_batch = ahead; micro_batch < micro_batches; ++micro_batch) {
      writer.forward(micro_batch);
      writer.backward(micro_batch - ahead);
    }
    for (int64_t micro_batch = micro_batches - ahead; micro_batch < micro_batches; ++micro_batch) {
      writer.backward(micro_batch);
    }
  }
  return schedule;
}

}  // namespace ridgeline::schedule
