// MeshShape and the groups of a mesh, as plain arithmetic. Ranks are one array shaped pipeline x data x context x
// tensor, in row order: tensor changes fastest, so that the ranks that talk most sit next to each other, and pipeline
// slowest:
//
//   rank = ((pipeline * data_size + data) * context_size + context) * tensor_size + tensor
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "spec/placement.h"
#include "spec/strategy.h"

namespace ridgeline::mesh {

using spec::Axis;

struct MeshShape {
  int64_t pipeline = 1;
  int64_t data = 1;
  int64_t context = 1;
  int64_t tensor = 1;
  int64_t shard_group = 0;  // copies that divide flat buffers among them; 0: all
  int64_t expert = 1;       // ranks that the experts of a layer lie on
  bool whole_experts = false;  // which the ranks of the tensor axis count among: else each has its part of an expert
  bool round = false;       // chunks of the model go round the stages: the last one talks to the first
  bool vee = false;         // chunks go down the stages and back: the first stage holds the model's end too

  // Of a strategy whose `data` is derived.
  static MeshShape of(const spec::Strategy& strategy) {
    return {.pipeline = strategy.pipeline,
            .data = strategy.data,
            .context = strategy.context,
            .tensor = strategy.tensor,
            .shard_group = strategy.shard_group,
            .expert = strategy.expert,
            .whole_experts = strategy.keeps_experts_whole(),
            .round = strategy.virtual_pipeline > 1 && !strategy.is_vee(),
            .vee = strategy.is_vee()};
  }

  int64_t ranks() const { return pipeline * data * context * tensor; }
  int64_t size(Axis axis) const;
  int64_t coordinate(Axis axis, int64_t rank) const;
  int64_t rank_at(int64_t pipeline_index, int64_t data_index, int64_t tensor_index, int64_t context_index = 0) const;
  // Ranks that differ from `rank` in `axis` only, and itself, ascending.
  std::vector<int64_t> slice(Axis axis, int64_t rank) const;
  // Ranks that hold the same parameters: they differ in data and context only. Ascending.
  std::vector<int64_t> copies(int64_t rank) const;
  // Ranks of one stage that experts lie on in turn: those at one place of the tensor axis, or where experts are whole
  // all. Of these, `expert` after one another hold the experts of a layer, and those `expert` apart hold the same ones.
  std::vector<int64_t> expert_ranks(int64_t rank) const;
  int64_t expert_coordinate(int64_t rank) const;
};

// What a group is for. `data` is all ranks with the same parameters, those of the context axis too.
enum class Role {
  world,
  tensor,
  context,
  data,
  shard,
  replicas,
  expert,       // the experts of a layer; tokens go to them and come back
  expert_data,  // the same experts; as `data`, `shard` and `replicas` for what is an expert's
  expert_shard,
  expert_replicas,
  pipeline,
  tied,
  forward,
  backward
};
inline constexpr std::array all_roles = {
    Role::world,  Role::tensor,      Role::context,      Role::data,            Role::shard,    Role::replicas,
    Role::expert, Role::expert_data, Role::expert_shard, Role::expert_replicas, Role::pipeline, Role::tied,
    Role::forward, Role::backward};
std::string to_string(Role role);

struct PlannedGroup {
  Role role = Role::world;
  std::vector<int64_t> members;
  int64_t rank = 0;      // place of this rank among the members
  int shares_with = -1;  // index of an earlier group with the same members whose connections it uses; -1: makes its own
};

// The groups of `rank`, in the order in which all ranks create theirs. Groups for collectives with equal members share
// connections. The two directions of the pipeline never share: a message of activations must not wait behind one of
// gradients; nor do `context` and `expert`, whose messages must not wait behind a reduction of gradients. Groups of one
// rank have no connections and share with none. `shard` is the neighbours in `data` that divide flat buffers among them,
// `replicas` the ranks that hold the same shards in other such groups. `tied` is the first and the last stage's ranks,
// which both hold the token embedding; ranks of other stages, and all of a V, are alone in it.
std::vector<PlannedGroup> plan_groups(const MeshShape& shape, int64_t rank);

}  // namespace ridgeline::mesh
