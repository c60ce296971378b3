// Interleaved 1F1B (Narayanan et al. 2021, arXiv 2104.04473, section 2.2.2): stage s holds the global stages s, s + p,
// s + 2p ... as its chunks. Micro-batches go through in groups of p: a group runs forward on chunk 0, then on chunk 1,
// and so on, backward on the last chunk first. A stage runs 2 (p - s - 1) + (v - 1) p forwards ahead, then one forward
// and one backward in turn.
//
// Idle share (p - 1) / (v m + p - 1): the bubble is v times shorter than 1F1B's, for v times the messages. With two
// stages, messages of different chunks share a link in each direction, which has to hold two of them.
#include <algorithm>

#include "core/error.h"
#include "schedule/algorithms.h"

namespace ridgeline::schedule {
namespace {

struct Turn {
  int64_t micro_batch;
  int64_t chunk;
};

// The `index`-th forward of every stage; backwards take the chunks from the last one.
Turn turn(int64_t index, int64_t stages, int64_t chunks, bool is_backward) {
  const int64_t group = stages * chunks;
  const int64_t chunk = index % group / stages;
  return {index / group * stages + index % stages, is_backward ? chunks - 1 - chunk : chunk};
}

}  // namespace

Schedule interleaved(int64_t stages, int64_t chunks, int64_t micro_batches) {
  Schedule schedule = empty_schedule(round_places(stages, chunks), micro_batches);
  if (stages == 2 && chunks > 1) schedule.link_capacity = 2;
  const int64_t total = micro_batches * chunks;
  for (int64_t stage = 0; stage < stages; ++stage) {
    StageWriter writer(schedule, stage);
    const auto forward = [&](int64_t index) {
      const Turn next = turn(index, stages, chunks, false);
      writer.forward(next.micro_batch, next.chunk);
    };
    const auto backward = [&](int64_t index) {
      const Turn next = turn(index, stages, chunks, true);
      writer.backward(next.micro_batch, next.chunk);
    };
    const int64_t ahead = std::min(total, 2 * (stages - stage - 1) + (chunks - 1) * stages);
    for (int64_t index = 0; index < ahead; ++index) forward(index);
    for (int64_t index = ahead; index < total; ++index) {
      forward(index);
      backward(index - ahead);
    }
    for (int64_t index = total - ahead; index < total; ++index) backward(index);
  }
  return schedule;
}

Schedule make_interleaved_schedule(int64_t stages, int64_t chunks, int64_t micro_batches) {
  if (stages < 2 || chunks < 1 || micro_batches < 1 || micro_batches % stages != 0) {
    throw InputError(
        "an interleaved schedule of {} stages, {} chunks a stage and {} micro-batches: expected at least 2 stages, 1 "
        "chunk, and micro-batches that divide by the stages; change strategy.global_batch or strategy.pipeline",
        stages, chunks, micro_batches);
  }
  return interleaved(stages, chunks, micro_batches);
}

}  // namespace ridgeline::schedule
