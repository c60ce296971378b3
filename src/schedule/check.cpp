#include "schedule/check.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/error.h"
#include "schedule/replay.h"

namespace ridgeline::schedule {
namespace {

constexpr int64_t kind_count = 8;
constexpr int64_t absent = -1;

void check_form(const Schedule& schedule) {
  if (schedule.stages < 1 || schedule.chunks_per_stage < 1 || schedule.micro_batches < 1) {
    throw InternalError("schedule of {} stages, {} chunks a stage and {} micro-batches: each must be at least 1",
                        schedule.stages, schedule.chunks_per_stage, schedule.micro_batches);
  }
  if (schedule.link_capacity < 1) {
    throw InternalError("schedule with links of {} messages: expected at least 1", schedule.link_capacity);
  }
  const size_t stages = static_cast<size_t>(schedule.stages);
  if (schedule.actions.size() != stages || schedule.global_stage.size() != stages) {
    throw InternalError("schedule of {} stages has {} lists of actions and {} rows of global stages", schedule.stages,
                        schedule.actions.size(), schedule.global_stage.size());
  }
  std::vector<int64_t> seen;
  for (const std::vector<int64_t>& row : schedule.global_stage) {
    if (static_cast<int64_t>(row.size()) != schedule.chunks_per_stage) {
      throw InternalError("a stage holds {} chunks, expected {}", row.size(), schedule.chunks_per_stage);
    }
    seen.insert(seen.end(), row.begin(), row.end());
  }
  std::sort(seen.begin(), seen.end());
  for (int64_t i = 0; i < static_cast<int64_t>(seen.size()); ++i) {
    if (seen[i] != i) throw InternalError("global stage {} is not held exactly once", std::min(i, seen[i]));
  }
}

// Index in one stage's list of each kind of action of each micro-batch and chunk.
class Positions {
 public:
  Positions(const Schedule& schedule, int64_t stage) : schedule_(schedule), stage_(stage) {
    none_.fill(absent);
    table_.assign(schedule.micro_batches * schedule.chunks_per_stage, none_);
    const StageActions& list = schedule.actions[stage];
    for (int64_t index = 0; index < static_cast<int64_t>(list.size()); ++index) enter(list[index], index);
  }

  int64_t of(ActionKind kind, int64_t micro_batch, int64_t chunk) const {
    return table_[micro_batch * schedule_.chunks_per_stage + chunk][static_cast<int64_t>(kind)];
  }

 private:
  void enter(const Action& action, int64_t index) {
    if (action.micro_batch < 0 || action.micro_batch >= schedule_.micro_batches || action.chunk < 0 ||
        action.chunk >= schedule_.chunks_per_stage) {
      throw InternalError("stage {}, action {}: {} is out of range", stage_, index, to_string(action));
    }
    int64_t& entry =
        table_[action.micro_batch * schedule_.chunks_per_stage + action.chunk][static_cast<int64_t>(action.kind)];
    if (entry != absent) {
      throw InternalError("stage {}, action {}: {} was already done by action {}", stage_, index, to_string(action),
                          entry);
    }
    entry = index;
  }

  const Schedule& schedule_;
  int64_t stage_;
  std::array<int64_t, kind_count> none_;
  std::vector<std::array<int64_t, kind_count>> table_;
};

// The rules for one micro-batch on one chunk.
class PieceCheck {
 public:
  PieceCheck(const Schedule& schedule, const Positions& positions, int64_t stage, int64_t micro_batch, int64_t chunk)
      : schedule_(schedule), positions_(positions), stage_(stage), micro_batch_(micro_batch), chunk_(chunk) {}

  void run() const {
    expect(ActionKind::forward, true);
    expect_message(ActionKind::receive_activation);
    expect_message(ActionKind::send_activation);
    order(ActionKind::receive_activation, ActionKind::forward);
    order(ActionKind::forward, ActionKind::send_activation);
    if (schedule_.has_backward) {
      run_backward();
    } else {
      for (const ActionKind kind : {ActionKind::backward, ActionKind::backward_input, ActionKind::backward_weight,
                                    ActionKind::send_gradient, ActionKind::receive_gradient}) {
        expect(kind, false);
      }
    }
    order_neighbours();
  }

 private:
  void run_backward() const {
    const bool split = has(ActionKind::backward_input) || has(ActionKind::backward_weight);
    expect(ActionKind::backward, !split);
    expect(ActionKind::backward_input, split);
    expect(ActionKind::backward_weight, split);
    expect_message(ActionKind::receive_gradient);
    expect_message(ActionKind::send_gradient);
    order(ActionKind::forward, backward_kind());
    order(ActionKind::receive_gradient, backward_kind());
    order(backward_kind(), ActionKind::send_gradient);
    order(ActionKind::backward_input, ActionKind::backward_weight);
  }

  // Chunks of this stage that follow one another in the model hand over without a message.
  void order_neighbours() const {
    const std::optional<Place> next = holder(schedule_, schedule_.global_stage[stage_][chunk_] + 1);
    if (!next || next->stage != stage_) return;
    const PieceCheck other(schedule_, positions_, stage_, micro_batch_, next->chunk);
    if (position(ActionKind::forward) > other.position(ActionKind::forward)) {
      fail(ActionKind::forward, fmt::format("must precede that of chunk {}", next->chunk));
    }
    if (schedule_.has_backward && position(backward_kind()) < other.position(other.backward_kind())) {
      fail(backward_kind(), fmt::format("must follow that of chunk {}", next->chunk));
    }
  }

  ActionKind backward_kind() const {
    return has(ActionKind::backward_input) ? ActionKind::backward_input : ActionKind::backward;
  }
  int64_t position(ActionKind kind) const { return positions_.of(kind, micro_batch_, chunk_); }
  bool has(ActionKind kind) const { return position(kind) != absent; }

  void expect(ActionKind kind, bool wanted) const {
    if (has(kind) != wanted) fail(kind, wanted ? "is missing" : "must not be there");
  }
  void expect_message(ActionKind kind) const {
    expect(kind, peer(schedule_, stage_, {kind, micro_batch_, chunk_}).has_value());
  }
  void order(ActionKind first, ActionKind second) const {
    if (has(first) && has(second) && position(first) > position(second)) {
      fail(first, fmt::format("(action {}) must precede {} (action {})", position(first), to_string(second),
                              position(second)));
    }
  }
  [[noreturn]] void fail(ActionKind kind, const std::string& what) const {
    throw InternalError("stage {}: {} {}", stage_, to_string(Action{kind, micro_batch_, chunk_}), what);
  }

  const Schedule& schedule_;
  const Positions& positions_;
  int64_t stage_;
  int64_t micro_batch_;
  int64_t chunk_;
};

void check_stage(const Schedule& schedule, int64_t stage) {
  const Positions positions(schedule, stage);
  for (int64_t micro_batch = 0; micro_batch < schedule.micro_batches; ++micro_batch) {
    for (int64_t chunk = 0; chunk < schedule.chunks_per_stage; ++chunk) {
      PieceCheck(schedule, positions, stage, micro_batch, chunk).run();
    }
  }
}

// Is it a gradient, its micro-batch, and the global stage that receives it.
using MessageName = std::tuple<bool, int64_t, int64_t>;

MessageName message_name(const Schedule& schedule, int64_t stage, const Action& action) {
  const int64_t here = schedule.global_stage[stage][action.chunk];
  const bool gradient = action.kind == ActionKind::send_gradient || action.kind == ActionKind::receive_gradient;
  const int64_t receiver = is_receive(action.kind) ? here : (gradient ? here - 1 : here + 1);
  return {gradient, action.micro_batch, receiver};
}

void check_matched(const Schedule& schedule) {
  struct Listed {
    MessageName name;
    Action action;
  };
  const int64_t stages = schedule.stages;
  std::vector<std::vector<Listed>> sent(stages * stages), received(stages * stages);
  for (int64_t stage = 0; stage < stages; ++stage) {
    for (const Action& action : schedule.actions[stage]) {
      if (!is_send(action.kind) && !is_receive(action.kind)) continue;
      const int64_t other = *peer(schedule, stage, action);
      auto& list = is_send(action.kind) ? sent[stage * stages + other] : received[other * stages + stage];
      list.push_back({message_name(schedule, stage, action), action});
    }
  }
  for (int64_t link = 0; link < stages * stages; ++link) {
    // Complete stages send and receive the same set on a link, so only the order can differ.
    RIDGELINE_ASSERT(sent[link].size() == received[link].size());
    for (size_t i = 0; i < sent[link].size(); ++i) {
      if (sent[link][i].name == received[link][i].name) continue;
      throw InternalError("message {} from stage {} to stage {} is sent by {} but received by {}", i, link / stages,
                          link % stages, to_string(sent[link][i].action), to_string(received[link][i].action));
    }
  }
}

void check_live(const Schedule& schedule, int64_t link_capacity) {
  const Replay result = replay(schedule, {}, link_capacity);
  if (result.finished) return;
  std::string waiting;
  for (int64_t stage = 0; stage < schedule.stages; ++stage) {
    const StageActions& list = schedule.actions[stage];
    const int64_t index = result.executed[stage];
    if (index == static_cast<int64_t>(list.size())) continue;
    waiting +=
        fmt::format("{}stage {} at action {}, {}", waiting.empty() ? "" : "; ", stage, index, to_string(list[index]));
  }
  throw InternalError("the schedule deadlocks with {} on each link: {}",
                      link_capacity == unlimited_capacity ? std::string("any number of messages")
                      : link_capacity == 1                ? std::string("one message")
                                                          : fmt::format("{} messages", link_capacity),
                      waiting);
}

}  // namespace

void check_stages(const Schedule& schedule) {
  check_form(schedule);
  for (int64_t stage = 0; stage < schedule.stages; ++stage) check_stage(schedule, stage);
}

void check(const Schedule& schedule) {
  check_stages(schedule);
  check_matched(schedule);
  check_live(schedule, unlimited_capacity);
  check_live(schedule, schedule.link_capacity);
}

int64_t least_link_capacity(const Schedule& schedule) {
  const int64_t most = schedule.micro_batches * schedule.global_stages();
  int64_t capacity = 1;
  while (capacity < most && !replay(schedule, {}, capacity).finished) capacity *= 2;
  return capacity;
}

int64_t peak_in_flight(const Schedule& schedule, int64_t stage) {
  return peak_kept(schedule, stage, std::vector<Kept>(schedule.chunks_per_stage, Kept{1, 1}));
}

std::vector<int64_t> kept_after(const Schedule& schedule, int64_t stage, const std::vector<Kept>& of_chunk) {
  std::vector<int64_t> after;
  if (!schedule.has_backward) return after;
  const StageActions& actions = schedule.actions.at(stage);
  after.reserve(actions.size());
  int64_t kept = 0;
  for (const Action& action : actions) {
    const Kept& chunk = of_chunk.at(action.chunk);
    if (action.kind == ActionKind::forward) kept += chunk.activations;
    if (action.kind == ActionKind::backward) kept -= chunk.activations;
    if (action.kind == ActionKind::backward_input) kept += chunk.deferred - chunk.activations;
    if (action.kind == ActionKind::backward_weight) kept -= chunk.deferred;
    after.push_back(kept);
  }
  return after;
}

int64_t peak_kept(const Schedule& schedule, int64_t stage, const std::vector<Kept>& of_chunk) {
  int64_t peak = 0;
  for (const int64_t kept : kept_after(schedule, stage, of_chunk)) peak = std::max(peak, kept);
  return peak;
}

}  // namespace ridgeline::schedule
