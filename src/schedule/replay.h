// Replay of a schedule without tensors: every stage executes its list as an executor would, with given durations. The
// one player of action lists: proofs (schedule/check.h) and predictions (simulate/timeline.h) both use it. Linear in the
// number of actions.
//
// Sends are posted and cost the sender nothing while its link has room; a receive waits for the message that it names
// at the head of its link. A link is a pair of stages in one direction and carries `link_capacity` messages that were
// sent and not yet received; a send waits where it is full. So a replay finds deadlocks and gives the time that a
// schedule's dependencies alone would take: with equal stages and free messages a 1F1B or GPipe step lasts (m + p - 1)
// (f + b), of which every stage is idle (p - 1) (f + b) (arXiv 2104.04473, section 2.2).
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "schedule/actions.h"

namespace ridgeline::schedule {

// In any unit of time; of one micro-batch on one chunk.
struct Durations {
  double forward = 1.0;
  double backward_input = 1.0;
  double backward_weight = 1.0;  // ActionKind::backward takes the sum of both
  double message = 0.0;          // from the end of its compute to its arrival
};

// The same of each chunk by itself.
struct ChunkDurations {
  double forward = 0;
  double backward = 0;         // both halves, where an action runs both
  double backward_weight = 0;  // of `backward`, where the schedule splits it
};

// One compute action, when it ran.
struct Span {
  int32_t stage = 0;
  Action action;
  double begin = 0;
  double end = 0;
};

inline constexpr int64_t unlimited_capacity = std::numeric_limits<int64_t>::max();

struct Replay {
  bool finished = false;          // false: deadlock
  std::vector<int64_t> executed;  // [stage] number of actions done; where not finished, the index of the one that waits
  std::vector<double> busy;       // [stage] time spent in compute
  double makespan = 0.0;          // when the last action ended
  std::vector<Span> spans;        // where asked for

  // Share of the stages' time that is not compute.
  double idle_share() const;
};

// The schedule must be well formed (actions of known micro-batches and chunks); it need not be correct.
Replay replay(const Schedule& schedule, const Durations& durations = {}, int64_t link_capacity = unlimited_capacity);
// `durations`: of stage 0's chunks, then of stage 1's, and so on; links are unlimited.
Replay replay(const Schedule& schedule, const std::vector<ChunkDurations>& durations, double message, bool keeps_spans);

}  // namespace ridgeline::schedule
