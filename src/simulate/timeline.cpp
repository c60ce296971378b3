#include "simulate/timeline.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace ridgeline::simulate {
namespace {

using schedule::Action;
using schedule::ActionKind;

// Arrival times of messages by what they carry: (direction, global stage that sends, micro-batch); below zero: not
// sent.
class Mail {
 public:
  explicit Mail(const schedule::Schedule& schedule)
      : micro_batches_(schedule.micro_batches),
        arrivals_(2 * schedule.global_stages() * schedule.micro_batches, -1.0) {}
  double& activation(int64_t from, int64_t micro_batch) { return arrivals_[2 * (from * micro_batches_ + micro_batch)]; }
  double& gradient(int64_t from, int64_t micro_batch) {
    return arrivals_[2 * (from * micro_batches_ + micro_batch) + 1];
  }

 private:
  int64_t micro_batches_;
  std::vector<double> arrivals_;
};

class Player {
 public:
  Player(const schedule::Schedule& schedule, const std::vector<ChunkDurations>& durations, double message, bool keeps)
      : schedule_(schedule), durations_(durations), message_(message), keeps_(keeps), mail_(schedule) {
    timeline_.busy.assign(schedule.stages, 0.0);
    clock_.assign(schedule.stages, 0.0);
    next_.assign(schedule.stages, 0);
  }

  Timeline run() {
    bool progress = true;
    // Back and forth, as activations and gradients travel.
    while (progress) {
      progress = false;
      for (int64_t stage = 0; stage < schedule_.stages; ++stage) progress |= advance(stage);
      for (int64_t stage = schedule_.stages - 1; stage >= 0; --stage) progress |= advance(stage);
    }
    for (int64_t stage = 0; stage < schedule_.stages; ++stage) {
      if (next_[stage] == schedule_.actions[stage].size()) continue;
      throw InternalError("stage {} waits for ever at {}", stage, to_string(schedule_.actions[stage][next_[stage]]));
    }
    timeline_.seconds = *std::max_element(clock_.begin(), clock_.end());
    return std::move(timeline_);
  }

 private:
  bool advance(int64_t stage) {
    const schedule::StageActions& list = schedule_.actions[stage];
    const size_t start = next_[stage];
    while (next_[stage] < list.size() && execute(stage, list[next_[stage]])) ++next_[stage];
    return next_[stage] > start;
  }

  bool execute(int64_t stage, const Action& action) {
    const int64_t here = schedule_.global_stage[stage][action.chunk];
    const ChunkDurations& durations = durations_[stage * schedule_.chunks_per_stage + action.chunk];
    switch (action.kind) {
      case ActionKind::send_activation:
        mail_.activation(here, action.micro_batch) = clock_[stage] + message_;
        return true;
      case ActionKind::send_gradient:
        mail_.gradient(here, action.micro_batch) = clock_[stage] + message_;
        return true;
      case ActionKind::receive_activation:
        return wait(stage, mail_.activation(here - 1, action.micro_batch));
      case ActionKind::receive_gradient:
        return wait(stage, mail_.gradient(here + 1, action.micro_batch));
      case ActionKind::forward:
        return compute(stage, action, durations.forward);
      case ActionKind::backward:
        return compute(stage, action, durations.backward);
      case ActionKind::backward_input:
        return compute(stage, action, durations.backward - durations.backward_weight);
      case ActionKind::backward_weight:
        return compute(stage, action, durations.backward_weight);
    }
    throw InternalError("ActionKind {}", static_cast<int>(action.kind));
  }

  bool wait(int64_t stage, double arrival) {
    if (arrival < 0) return false;
    clock_[stage] = std::max(clock_[stage], arrival);
    return true;
  }

  bool compute(int64_t stage, const Action& action, double seconds) {
    const double begin = clock_[stage];
    clock_[stage] += seconds;
    timeline_.busy[stage] += seconds;
    if (keeps_) timeline_.spans.push_back({static_cast<int32_t>(stage), action, begin, clock_[stage]});
    return true;
  }

  const schedule::Schedule& schedule_;
  const std::vector<ChunkDurations>& durations_;
  double message_;
  bool keeps_;
  Mail mail_;
  Timeline timeline_;
  std::vector<double> clock_;
  std::vector<size_t> next_;
};

}  // namespace

Timeline play(const schedule::Schedule& schedule, const std::vector<ChunkDurations>& durations, double message_seconds,
              bool keeps_spans) {
  RIDGELINE_ASSERT(static_cast<int64_t>(durations.size()) == schedule.global_stages());
  return Player(schedule, durations, message_seconds, keeps_spans).run();
}

std::string chrome_trace(const Timeline& timeline) {
  std::string text = "[\n";
  int32_t stages = static_cast<int32_t>(timeline.busy.size());
  for (int32_t stage = 0; stage < stages; ++stage) {
    text += fmt::format(R"({{"name":"thread_name","ph":"M","pid":0,"tid":{},"args":{{"name":"stage {}"}}}},)"
                        "\n",
                        stage, stage);
  }
  for (const Span& span : timeline.spans) {
    text += fmt::format(R"({{"name":"{} {}.{}","cat":"{}","ph":"X","pid":0,"tid":{},"ts":{:.3f},"dur":{:.3f}}},)"
                        "\n",
                        span.action.kind == ActionKind::forward ? "F" : "B", span.action.micro_batch, span.action.chunk,
                        to_string(span.action.kind), span.stage, span.begin * 1e6, (span.end - span.begin) * 1e6);
  }
  if (text.size() > 2) text.erase(text.size() - 2, 1);  // the last comma
  return text + "]\n";
}

}  // namespace ridgeline::simulate
