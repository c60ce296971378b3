#include "schedule/replay.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"

namespace ridgeline::schedule {
namespace {

struct Message {
  ActionKind sent_as;
  int64_t micro_batch;
  int64_t from_global_stage;
  double arrival;
};

struct Link {
  std::vector<Message> messages;
  std::vector<double> receive_times;  // of the messages received so far
  int64_t received() const { return static_cast<int64_t>(receive_times.size()); }
};

class Player {
 public:
  Player(const Schedule& schedule, const std::vector<ChunkDurations>& durations, double message, int64_t link_capacity,
         bool keeps_spans)
      : schedule_(schedule),
        durations_(durations),
        message_(message),
        capacity_(link_capacity),
        keeps_spans_(keeps_spans),
        clock_(schedule.stages, 0.0),
        links_(schedule.stages * schedule.stages) {
    for (int64_t stage = 0; stage < schedule.stages; ++stage) {
      for (int64_t chunk = 0; chunk < schedule.chunks_per_stage; ++chunk) {
        before_.push_back(peer(schedule, stage, {ActionKind::receive_activation, 0, chunk}).value_or(kNobody));
        behind_.push_back(peer(schedule, stage, {ActionKind::send_activation, 0, chunk}).value_or(kNobody));
      }
    }
    result_.executed.assign(schedule.stages, 0);
    result_.busy.assign(schedule.stages, 0.0);
  }

  Replay play() {
    bool progress = true;
    // Back and forth, as activations and gradients travel.
    while (progress) {
      progress = false;
      for (int64_t stage = 0; stage < schedule_.stages; ++stage) progress |= advance(stage);
      for (int64_t stage = schedule_.stages - 1; stage >= 0; --stage) progress |= advance(stage);
    }
    result_.finished = true;
    for (int64_t stage = 0; stage < schedule_.stages; ++stage) {
      if (result_.executed[stage] < static_cast<int64_t>(schedule_.actions[stage].size())) result_.finished = false;
    }
    result_.makespan = *std::max_element(clock_.begin(), clock_.end());
    return std::move(result_);
  }

 private:
  // Executes the stage's list until it must wait; whether anything was done.
  bool advance(int64_t stage) {
    const StageActions& list = schedule_.actions[stage];
    int64_t& next = result_.executed[stage];
    const int64_t start = next;
    while (next < static_cast<int64_t>(list.size()) && execute(stage, list[next])) ++next;
    return next > start;
  }

  bool execute(int64_t stage, const Action& action) {
    if (is_send(action.kind)) return send(stage, action);
    if (is_receive(action.kind)) return receive(stage, action);
    const double begin = clock_[stage], duration = compute_duration(stage, action);
    clock_[stage] += duration;
    result_.busy[stage] += duration;
    if (keeps_spans_) result_.spans.push_back({static_cast<int32_t>(stage), action, begin, clock_[stage]});
    return true;
  }

  bool send(int64_t stage, const Action& action) {
    Link& link = this->link(stage, require_peer(stage, action));
    const int64_t sent = static_cast<int64_t>(link.messages.size());
    if (sent - link.received() >= capacity_) return false;
    // Room came free when the message `capacity` places before this one was received.
    if (sent >= capacity_) clock_[stage] = std::max(clock_[stage], link.receive_times[sent - capacity_]);
    link.messages.push_back({action.kind, action.micro_batch, schedule_.global_stage[stage][action.chunk],
                             clock_[stage] + message_});
    return true;
  }

  bool receive(int64_t stage, const Action& action) {
    Link& link = this->link(require_peer(stage, action), stage);
    if (link.received() == static_cast<int64_t>(link.messages.size())) return false;
    const Message& message = link.messages[link.received()];
    const int64_t here = schedule_.global_stage[stage][action.chunk];
    const bool activation = action.kind == ActionKind::receive_activation;
    const ActionKind expected = activation ? ActionKind::send_activation : ActionKind::send_gradient;
    if (message.sent_as != expected || message.micro_batch != action.micro_batch ||
        message.from_global_stage != (activation ? here - 1 : here + 1)) {
      return false;
    }
    clock_[stage] = std::max(clock_[stage], message.arrival);
    link.receive_times.push_back(clock_[stage]);
    return true;
  }

  double compute_duration(int64_t stage, const Action& action) const {
    const ChunkDurations& durations = durations_[stage * schedule_.chunks_per_stage + action.chunk];
    switch (action.kind) {
      case ActionKind::forward:
        return durations.forward;
      case ActionKind::backward:
        return durations.backward;
      case ActionKind::backward_input:
        return durations.backward - durations.backward_weight;
      case ActionKind::backward_weight:
        return durations.backward_weight;
      default:
        throw InternalError("{} is not compute", to_string(action.kind));
    }
  }

  int64_t require_peer(int64_t stage, const Action& action) const {
    const bool is_behind = action.kind == ActionKind::send_activation || action.kind == ActionKind::receive_gradient;
    const int64_t other = (is_behind ? behind_ : before_)[stage * schedule_.chunks_per_stage + action.chunk];
    if (other == kNobody) throw InternalError("stage {}: {} has no peer", stage, to_string(action));
    return other;
  }

  Link& link(int64_t from, int64_t to) { return links_[from * schedule_.stages + to]; }

  static constexpr int64_t kNobody = -1;

  const Schedule& schedule_;
  const std::vector<ChunkDurations>& durations_;
  double message_;
  int64_t capacity_;
  bool keeps_spans_;
  std::vector<int64_t> before_, behind_;  // stages of the neighbours in the model, by stage and chunk
  std::vector<double> clock_;
  std::vector<Link> links_;
  Replay result_;
};

}  // namespace

double Replay::idle_share() const {
  if (makespan <= 0.0) return 0.0;
  const double total = std::accumulate(busy.begin(), busy.end(), 0.0);
  return 1.0 - total / (makespan * static_cast<double>(busy.size()));
}

Replay replay(const Schedule& schedule, const Durations& durations, int64_t link_capacity) {
  RIDGELINE_ASSERT(schedule.stages > 0 && link_capacity > 0);
  const ChunkDurations each{durations.forward, durations.backward_input + durations.backward_weight,
                            durations.backward_weight};
  const std::vector<ChunkDurations> all(schedule.global_stages(), each);
  return Player(schedule, all, durations.message, link_capacity, /*keeps_spans=*/false).play();
}

Replay replay(const Schedule& schedule, const std::vector<ChunkDurations>& durations, double message,
              bool keeps_spans) {
  RIDGELINE_ASSERT(schedule.stages > 0 && static_cast<int64_t>(durations.size()) == schedule.global_stages());
  return Player(schedule, durations, message, unlimited_capacity, keeps_spans).play();
}

}  // namespace ridgeline::schedule
