// Event simulation: executes the actions of a schedule (schedule/actions.h) with a duration for each chunk of each
// stage.
//
// Sends are posted and cost their stage nothing; a message arrives `message_seconds` after it was sent, and a receive
// waits for it: the executor of the trainer behaves so. Every stage's actions run in their order. Linear in the number
// of actions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/actions.h"

namespace ridgeline::simulate {

// Seconds of a micro-batch on one chunk of a stage.
struct ChunkDurations {
  double forward = 0;
  double backward = 0;         // both halves, where an action runs both
  double backward_weight = 0;  // of `backward`, where the schedule splits it
};

struct Span {
  int32_t stage = 0;
  schedule::Action action;
  double begin = 0;
  double end = 0;
};

struct Timeline {
  double seconds = 0;
  std::vector<double> busy;  // [stage]
  std::vector<Span> spans;   // compute only, where asked for
};

// `durations`: of stage 0's chunks, then of stage 1's, and so on. Throws InternalError where the schedule does not end.
Timeline play(const schedule::Schedule& schedule, const std::vector<ChunkDurations>& durations, double message_seconds,
              bool keeps_spans);

// The spans as a Chrome trace (JSON array format), which Perfetto opens: a thread for each stage.
std::string chrome_trace(const Timeline& timeline);

}  // namespace ridgeline::simulate
