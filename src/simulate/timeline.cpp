#include "simulate/timeline.h"

#include <fmt/format.h>

#include <utility>

#include "core/error.h"
#include "report/chrome_trace.h"

namespace ridgeline::simulate {

Timeline play(const schedule::Schedule& schedule, const std::vector<ChunkDurations>& durations, double message_seconds,
              bool keeps_spans) {
  schedule::Replay replay = schedule::replay(schedule, durations, message_seconds, keeps_spans);
  for (int64_t stage = 0; stage < schedule.stages && !replay.finished; ++stage) {
    const auto at = static_cast<size_t>(replay.executed[stage]);
    if (at == schedule.actions[stage].size()) continue;
    throw InternalError("stage {} waits for ever at {}", stage, to_string(schedule.actions[stage][at]));
  }
  return {replay.makespan, std::move(replay.busy), std::move(replay.spans)};
}

std::string chrome_trace(const Timeline& timeline) {
  report::ChromeTrace trace;
  for (size_t stage = 0; stage < timeline.busy.size(); ++stage) {
    const auto process = static_cast<int64_t>(stage);
    trace.name_process(process, fmt::format("stage {} (simulated)", stage));
    trace.name_thread(process, 0, "compute");
  }
  for (const schedule::Span& span : timeline.spans) {
    trace.slice(span.stage, 0,
                {.name = schedule::trace_name(span.action),
                 .category = to_string(span.action.kind),
                 .begin = span.begin,
                 .end = span.end,
                 .numbers = {{"micro_batch", span.action.micro_batch}, {"chunk", span.action.chunk}}});
  }
  return report::trace_document(trace.events());
}

}  // namespace ridgeline::simulate
