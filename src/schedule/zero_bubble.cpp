// ZB-H1 (Qi et al. 2023, arXiv 2401.10241, section 3): 1F1B whose backward is split in gradients of the input, which
// the stage before waits for, and gradients of the weights, for which nobody does. Stage s puts the latter off by s
// micro-batches, so that all stages keep as many micro-batches as 1F1B's first one, and computes them where it would
// wait at the end.
//
// In flight on every stage: min(m, p), of which min(m, p - s) before their backward for the input. With a forward of F,
// a backward of B for the input and W for the weights, p stages and m >= p micro-batches a step lasts m (F + B + W) +
// (p - 1) (F + max(0, B - W)); a third of 1F1B's bubble where the three are equal.
#include <algorithm>

#include "schedule/algorithms.h"

namespace ridgeline::schedule {

Schedule zero_bubble(int64_t stages, int64_t micro_batches) {
  Schedule schedule = one_chunk_schedule(stages, micro_batches);
  for (int64_t stage = 0; stage < stages; ++stage) {
    StageWriter writer(schedule, stage);
    const int64_t ahead = std::min(micro_batches, stages - stage - 1);
    for (int64_t micro_batch = 0; micro_batch < ahead; ++micro_batch) writer.forward(micro_batch);
    for (int64_t micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
      if (micro_batch + ahead < micro_batches) writer.forward(micro_batch + ahead);
      writer.backward_input(micro_batch);
      if (micro_batch >= stage) writer.backward_weight(micro_batch - stage);
    }
    for (int64_t micro_batch = std::max<int64_t>(0, micro_batches - stage); micro_batch < micro_batches;
         ++micro_batch) {
      writer.backward_weight(micro_batch);
    }
  }
  return schedule;
}

}  // namespace ridgeline::schedule
