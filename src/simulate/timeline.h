// Event simulation: the replay of a schedule (schedule/replay.h) in seconds, with a duration for each chunk of each stage,
// and its picture. A message arrives `message_seconds` after it was sent; sending costs a stage nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/replay.h"

namespace ridgeline::simulate {

using schedule::ChunkDurations;  // seconds of a micro-batch on one chunk of a stage

struct Timeline {
  double seconds = 0;
  std::vector<double> busy;  // [stage]
  std::vector<schedule::Span> spans;   // compute only, where asked for
};

// `durations`: of stage 0's chunks, then of stage 1's, and so on. Throws InternalError where the schedule does not end.
Timeline play(const schedule::Schedule& schedule, const std::vector<ChunkDurations>& durations, double message_seconds,
              bool keeps_spans);

// The spans as a trace that Perfetto opens (report/chrome_trace.h): a process for each stage, in the form and with the
// names of the ranks that `train` traces, so that both can be read side by side.
std::string chrome_trace(const Timeline& timeline);

}  // namespace ridgeline::simulate
