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
  Player(const Schedule& schedule, const Durations& durations, int64_t link_capacity)
      : schedule_(schedule),
        durations_(durations),
        capacity_(link_capacity),
        clock_(schedule.stages, 0.0),
        links_(schedule.stages * schedule.stages) {
    result_.executed.assign(schedule.stages, 0);
    result_.busy.assign(schedule.stages, 0.0);
  }

  Replay play() {
    bool progress = true;
    while (progress) {
      progress = false;
      for (int64_t stage = 0; stage < schedule_.stages; ++stage) progress |= advance(stage);
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
    const double duration = compute_duration(action.kind);
    clock_[stage] += duration;
    result_.busy[stage] += duration;
    return true;
  }

  bool send(int64_t stage, const Action& action) {
    Link& link = this->link(stage, require_peer(stage, action));
    const int64_t sent = static_cast<int64_t>(link.messages.size());
    if (sent - link.received() >= capacity_) return false;
    // Room came free when the message `capacity` places before this one was received.
    if (sent >= capacity_) clock_[stage] = std::max(clock_[stage], link.receive_times[sent - capacity_]);
    link.messages.push_back({action.kind, action.micro_batch, schedule_.global_stage[stage][action.chunk],
                             clock_[stage] + durations_.message});
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

  double compute_duration(ActionKind kind) const {
    switch (kind) {
      case ActionKind::forward:
        return durations_.forward;
      case ActionKind::backward:
        return durations_.backward_input + durations_.backward_weight;
      case ActionKind::backward_input:
        return durations_.backward_input;
      case ActionKind::backward_weight:
        return durations_.backward_weight;
      default:
        throw InternalError("{} is not compute", to_string(kind));
    }
  }

  int64_t require_peer(int64_t stage, const Action& action) const {
    const std::optional<int64_t> other = peer(schedule_, stage, action);
    if (!other) throw InternalError("stage {}: {} has no peer", stage, to_string(action));
    return *other;
  }

  Link& link(int64_t from, int64_t to) { return links_[from * schedule_.stages + to]; }

  const Schedule& schedule_;
  const Durations& durations_;
  int64_t capacity_;
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
  return Player(schedule, durations, link_capacity).play();
}

}  // namespace ridgeline::schedule
