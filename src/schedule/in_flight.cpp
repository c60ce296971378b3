#include "schedule/in_flight.h"

#include <algorithm>

#include "core/error.h"

namespace ridgeline::schedule {
namespace {

// 2 (stages behind) + (chunks - 1) stages forwards run ahead of the first backward, and one more at once with it. Of the
// first chunk, a second group of micro-batches has gone in by the time that the first group's come back from it.
InFlight interleaved(int64_t stages, int64_t chunks, int64_t micro_batches, int64_t stage) {
  const int64_t behind = stages - stage - 1;
  return {std::min(micro_batches * chunks, 2 * behind + (chunks - 1) * stages + 1), std::min(micro_batches, 2 * stages),
          1};
}

InFlight plain(spec::ScheduleKind kind, int64_t stages, int64_t micro_batches, int64_t stage) {
  switch (kind) {
    case spec::ScheduleKind::gpipe:
      return {micro_batches, micro_batches, micro_batches};
    case spec::ScheduleKind::one_f_one_b: {
      const int64_t most = std::min(micro_batches, stages - stage);
      return {most, most, most};
    }
  }
  throw InternalError("ScheduleKind {}", static_cast<int>(kind));
}

}  // namespace

InFlight most_in_flight(spec::ScheduleKind kind, int64_t stages, int64_t chunks, int64_t micro_batches, int64_t stage) {
  RIDGELINE_ASSERT(stage >= 0 && stage < stages && chunks >= 1 && micro_batches >= 1);
  InFlight most =
      chunks > 1 ? interleaved(stages, chunks, micro_batches, stage) : plain(kind, stages, micro_batches, stage);
  if (stage != 0) most.embedding = 0;
  if (stage != stages - 1) most.head = 0;
  return most;
}

}  // namespace ridgeline::schedule
