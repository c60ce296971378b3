// UnitShards: keeps whole only the units at work, where gradients (ZeRO-2) or values too (ZeRO-3) are sharded.
//
// Before a unit's forward or backward its values are gathered from all shards into the working buffer, and the next
// unit's gather is started, so that it travels while this one computes. Gradients are added in the working buffer; when a
// unit's backward is done its gradients are reduce-scattered, while the unit before it computes, and added to this rank's
// shard. That happens for every micro-batch, so that no rank ever holds more than its shard and the units under way:
// with a pipeline too, where keeping units gathered over several micro-batches would mean to keep the whole stage, as
// 1F1B walks through all of its units between two visits to one.
//
// What a slot of the working buffer holds is remembered: a unit whose forward is followed by its own backward, or that is
// alone in its slot, is gathered once. Nothing is allocated after construction.
#pragma once

#include <ATen/ATen.h>

#include <unordered_map>
#include <vector>

#include "mesh/mesh.h"
#include "nn/flat_parameters.h"
#include "nn/residence.h"

namespace ridgeline::optim {

class UnitShards final : public nn::Residence {
 public:
  UnitShards(const nn::FlatParameters& parameters, const mesh::Mesh& mesh);

  void enter(int64_t unit, const nn::Uses& uses, std::optional<int64_t> next) override;
  void leave(int64_t unit, bool gradients_final) override;

  // The shards' values are not what was gathered any more.
  void values_changed();
  // Returns when all gradients of this step are in the shards.
  void finish_gradients();

 private:
  static constexpr int64_t kNone = -1;
  struct Slot {
    int64_t values_of = kNone;  // group whose values it holds, or will when `gathers` are done
    std::vector<mesh::Work> gathers;
    int64_t gradients_of = kNone;  // group whose gradients are added to, or on their way
    bool open = false;             // added to since they were last scattered
    std::vector<mesh::Work> scatters;
  };

  const std::vector<int64_t>& groups_of(int64_t unit) const { return groups_.at(unit); }
  Slot& slot_of(int64_t group) { return slots_[static_cast<size_t>(parameters_.layout().groups[group].slot)]; }
  template <typename Function>
  void for_buckets(int64_t group, Function function) const;
  // This rank's shard of a bucket in the working buffer.
  at::Tensor own_part(const spec::FlatBucket& bucket) const;

  void start_gather(int64_t group);
  void open_gradients(int64_t group);
  void start_scatter(Slot& slot);
  void finish_scatter(Slot& slot);

  const nn::FlatParameters& parameters_;
  const mesh::Mesh& mesh_;
  std::unordered_map<int64_t, std::vector<int64_t>> groups_;  // by unit
  std::vector<Slot> slots_;
};

}  // namespace ridgeline::optim
