// Evaluation: every stage runs the forwards in order; nothing is kept for a backward.
//
// With chunks, micro-batches go through in groups of as many as there are stages: a group on one chunk, then on the
// next in model order. All stages follow one order of (group, global stage, micro-batch), in which every forward comes
// after what it needs; so wherever the chunks lie, and whatever number of micro-batches there is, no stage waits for
// ever.
#include <algorithm>
#include <utility>

#include "schedule/algorithms.h"
#include "schedule/check.h"

namespace ridgeline::schedule {

Schedule forward_only(std::vector<std::vector<int64_t>> global_stage, int64_t micro_batches) {
  Schedule schedule = empty_schedule(std::move(global_stage), micro_batches);
  schedule.has_backward = false;
  const int64_t group = schedule.chunks_per_stage == 1 ? micro_batches : schedule.stages;
  for (int64_t stage = 0; stage < schedule.stages; ++stage) {
    StageWriter writer(schedule, stage);
    for (int64_t begin = 0; begin < micro_batches; begin += group) {
      const int64_t end = std::min(micro_batches, begin + group);
      for (int64_t chunk = 0; chunk < schedule.chunks_per_stage; ++chunk) {
        for (int64_t micro_batch = begin; micro_batch < end; ++micro_batch) writer.forward(micro_batch, chunk);
      }
    }
  }
  if (schedule.chunks_per_stage > 1) schedule.link_capacity = least_link_capacity(schedule);
  return schedule;
}

}  // namespace ridgeline::schedule
