#include "cost/shard_traffic.h"

#include <map>
#include <optional>
#include <vector>

#include "cost/saved_tensors.h"

namespace ridgeline::cost {
namespace {

using schedule::ActionKind;
constexpr int64_t kNone = -1;
constexpr int64_t kGradientBytes = 4;

class Walk {
 public:
  Walk(const spec::ModelSpec& model, const spec::FlatLayout& layout, spec::Precision compute, bool gathers_values)
      : model_(model),
        layout_(layout),
        value_bytes_(element_bytes(Element::compute, compute)),
        gathers_values_(gathers_values),
        slots_(layout.slots.size()) {
    for (size_t group = 0; group < layout.groups.size(); ++group) {
      for (const int64_t unit : layout.groups[group].units) groups_[unit].push_back(static_cast<int64_t>(group));
    }
  }

  void action(ActionKind kind, const spec::Range& units) {
    switch (kind) {
      case ActionKind::forward:
        return forward(units);
      case ActionKind::backward:
      case ActionKind::backward_input:
        return backward(units);
      case ActionKind::backward_weight:
        return backward_weight(units);
      default:
        return;
    }
  }

  ShardTraffic end() {
    for (Slot& slot : slots_) scatter(slot);
    return traffic_;
  }

 private:
  struct Slot {
    int64_t values_of = kNone;
    int64_t gradients_of = kNone;
    bool open = false;  // gradients were added since they were scattered
  };

  // The head's forward makes its gradients; the embedding's backward looks nothing up.
  bool is_head(int64_t unit) const { return unit == spec::head_unit(model_); }
  bool backward_reads_values(int64_t unit) const { return unit != spec::embedding_unit(); }
  bool is_layer(int64_t unit) const { return !is_head(unit) && unit != spec::embedding_unit(); }

  void forward(const spec::Range& units) {
    for (int64_t unit = units.begin; unit < units.end; ++unit) {
      const bool is_last = unit + 1 == units.end;
      enter(unit, true, is_head(unit), is_last ? std::nullopt : std::optional(unit + 1));
    }
  }

  void backward(const spec::Range& units) {
    for (int64_t unit = units.end; unit-- > units.begin;) {
      const bool prefetches = unit > units.begin && backward_reads_values(unit - 1);
      enter(unit, backward_reads_values(unit), true, prefetches ? std::optional(unit - 1) : std::nullopt);
      leave(unit);
    }
  }

  // Only layers put weight gradients off.
  void backward_weight(const spec::Range& units) {
    for (int64_t unit = units.end; unit-- > units.begin;) {
      if (!is_layer(unit)) continue;
      enter(unit, false, true, std::nullopt);
      leave(unit);
    }
  }

  void enter(int64_t unit, bool values, bool gradients, std::optional<int64_t> next) {
    const std::vector<int64_t>& own = groups_.at(unit);
    if (gathers_values_ && values) {
      for (const int64_t group : own) gather(group);
    }
    if (gradients) {
      for (const int64_t group : own) open(group);
    }
    if (!gathers_values_ || !next) return;
    for (const int64_t group : groups_.at(*next)) {
      bool is_free = true;
      for (const int64_t busy : own) is_free = is_free && &slot_of(busy) != &slot_of(group);
      if (is_free) gather(group);
    }
  }

  void leave(int64_t unit) {
    for (const int64_t group : groups_.at(unit)) {
      Slot& slot = slot_of(group);
      if (layout_.groups[group].units.front() == unit && slot.gradients_of == group) scatter(slot);
    }
  }

  void gather(int64_t group) {
    if (slot_of(group).values_of == group) return;
    slot_of(group).values_of = group;
    traffic_.all_gather += shared(group) * value_bytes_;
  }

  void open(int64_t group) {
    Slot& slot = slot_of(group);
    if (slot.open && slot.gradients_of == group) return;
    scatter(slot);
    slot.gradients_of = group;
    slot.open = true;
  }

  void scatter(Slot& slot) {
    if (slot.open) traffic_.reduce_scatter += shared(slot.gradients_of) * kGradientBytes;
    slot.open = false;
  }

  // Elements of the group that have several shards: an expert may be on one rank alone.
  int64_t shared(int64_t group) const {
    const spec::Range& buckets = layout_.groups[group].buckets;
    int64_t elements = 0;
    for (int64_t bucket = buckets.begin; bucket < buckets.end; ++bucket) {
      if (layout_.buckets[bucket].shards > 1) elements += layout_.buckets[bucket].range.size();
    }
    return elements;
  }

  Slot& slot_of(int64_t group) { return slots_[static_cast<size_t>(layout_.groups[group].slot)]; }

  const spec::ModelSpec& model_;
  const spec::FlatLayout& layout_;
  int64_t value_bytes_;
  bool gathers_values_;
  std::map<int64_t, std::vector<int64_t>> groups_;  // by unit
  std::vector<Slot> slots_;
  ShardTraffic traffic_;
};

}  // namespace

ShardTraffic shard_traffic(const spec::ModelSpec& model, const spec::FlatLayout& layout, const spec::StageUnits& held,
                           const schedule::StageActions& actions, spec::Precision compute, bool gathers_values) {
  Walk walk(model, layout, compute, gathers_values);
  for (const schedule::Action& action : actions) walk.action(action.kind, held.at(action.chunk));
  return walk.end();
}

}  // namespace ridgeline::cost
