#include "optim/unit_shards.h"

#include <algorithm>

namespace ridgeline::optim {
namespace {

void wait_all(std::vector<mesh::Work>& works) {
  for (mesh::Work& work : works) work.wait();
  works.clear();
}

}  // namespace

UnitShards::UnitShards(const nn::FlatParameters& parameters, const mesh::Mesh& mesh)
    : parameters_(parameters), mesh_(mesh), slots_(parameters.layout().slots.size()) {
  const std::vector<spec::FlatGroup>& groups = parameters.layout().groups;
  for (size_t group = 0; group < groups.size(); ++group) {
    for (const int64_t unit : groups[group].units) groups_[unit].push_back(static_cast<int64_t>(group));
  }
}

template <typename Function>
void UnitShards::for_buckets(int64_t group, Function function) const {
  const spec::FlatLayout& layout = parameters_.layout();
  const spec::Range& range = layout.groups[group].buckets;
  for (int64_t bucket = range.begin; bucket < range.end; ++bucket) function(layout.buckets[bucket]);
}

at::Tensor UnitShards::own_part(const spec::FlatBucket& bucket) const {
  const spec::Range own = parameters_.shard(bucket);
  return parameters_.seen_gradients(bucket).narrow(0, own.begin - bucket.range.begin, own.size());
}

void UnitShards::enter(int64_t unit, const nn::Uses& uses, std::optional<int64_t> next) {
  const bool gathers = parameters_.sharding().values;
  if (gathers && uses.values) {
    for (const int64_t group : groups_of(unit)) start_gather(group);
    for (const int64_t group : groups_of(unit)) wait_all(slot_of(group).gathers);
  }
  if (uses.gradients) {
    for (const int64_t group : groups_of(unit)) open_gradients(group);
  }
  if (!gathers || !next) return;
  for (const int64_t group : groups_of(*next)) {
    const auto in_its_slot = [&](int64_t of_unit) { return &slot_of(of_unit) == &slot_of(group); };
    const auto& busy = groups_of(unit);
    if (std::none_of(busy.begin(), busy.end(), in_its_slot)) start_gather(group);
  }
}

void UnitShards::leave(int64_t unit, bool gradients_final) {
  if (!gradients_final) return;
  for (const int64_t group : groups_of(unit)) {
    // Backward comes to the first unit of a shared group last.
    const bool complete = parameters_.layout().groups[group].units.front() == unit;
    if (complete && slot_of(group).gradients_of == group) start_scatter(slot_of(group));
  }
}

void UnitShards::start_gather(int64_t group) {
  Slot& slot = slot_of(group);
  if (slot.values_of == group) return;
  wait_all(slot.gathers);
  slot.values_of = group;
  for_buckets(group, [&](const spec::FlatBucket& bucket) {
    slot.gathers.push_back(mesh_.holders(bucket.experts)
                               .shard.all_gather(parameters_.seen_values(bucket),
                                                 parameters_.values(bucket, parameters_.shard(bucket))));
  });
}

void UnitShards::values_changed() {
  for (Slot& slot : slots_) {
    wait_all(slot.gathers);
    slot.values_of = kNone;
  }
}

void UnitShards::open_gradients(int64_t group) {
  Slot& slot = slot_of(group);
  if (slot.open && slot.gradients_of == group) return;
  start_scatter(slot);  // of another group, whose backward is yet to come
  finish_scatter(slot);
  slot.gradients_of = group;
  slot.open = true;
  for_buckets(group, [&](const spec::FlatBucket& bucket) { parameters_.seen_gradients(bucket).zero_(); });
}

void UnitShards::start_scatter(Slot& slot) {
  if (!slot.open) return;
  slot.open = false;
  for_buckets(slot.gradients_of, [&](const spec::FlatBucket& bucket) {
    slot.scatters.push_back(
        mesh_.holders(bucket.experts).shard.reduce_scatter(own_part(bucket), parameters_.seen_gradients(bucket)));
  });
}

void UnitShards::finish_scatter(Slot& slot) {
  if (slot.scatters.empty()) return;
  wait_all(slot.scatters);
  for_buckets(slot.gradients_of, [&](const spec::FlatBucket& bucket) {
    parameters_.gradients(bucket, parameters_.shard(bucket)).add_(own_part(bucket));
  });
}

void UnitShards::finish_gradients() {
  for (Slot& slot : slots_) {
    start_scatter(slot);
    finish_scatter(slot);
  }
}

}  // namespace ridgeline::optim
