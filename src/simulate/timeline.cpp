#include "simulate/timeline.h"

#include <fmt/format.h>

#include <utility>

#include "core/error.h"

namespace ridgeline::simulate {

using schedule::ActionKind;

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
  std::string text = "[\n";
  int32_t stages = static_cast<int32_t>(timeline.busy.size());
  for (int32_t stage = 0; stage < stages; ++stage) {
    text += fmt::format(R"({{"name":"thread_name","ph":"M","pid":0,"tid":{},"args":{{"name":"stage {}"}}}},)"
                        "\n",
                        stage, stage);
  }
  for (const schedule::Span& span : timeline.spans) {
    text += fmt::format(R"({{"name":"{} {}.{}","cat":"{}","ph":"X","pid":0,"tid":{},"ts":{:.3f},"dur":{:.3f}}},)"
                        "\n",
                        span.action.kind == ActionKind::forward ? "F" : "B", span.action.micro_batch, span.action.chunk,
                        to_string(span.action.kind), span.stage, span.begin * 1e6, (span.end - span.begin) * 1e6);
  }
  if (text.size() > 2) text.erase(text.size() - 2, 1);  // the last comma
  return text + "]\n";
}

}  // namespace ridgeline::simulate
