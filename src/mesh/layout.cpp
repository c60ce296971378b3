#include "mesh/layout.h"

#include <algorithm>

#include "core/error.h"

namespace ridgeline::mesh {
namespace {

// Of the groups that concern experts.
std::vector<int64_t> expert_members(Role role, const MeshShape& shape, int64_t rank) {
  const std::vector<int64_t> ranks = shape.expert_ranks(rank);
  const int64_t place = std::find(ranks.begin(), ranks.end(), rank) - ranks.begin();
  const auto copies = static_cast<int64_t>(ranks.size()) / shape.expert;
  const int64_t width = static_cast<int64_t>(ranks.size()) / (shape.ranks() / (shape.pipeline * shape.tensor));
  const int64_t shards = shape.shard_group > 0 ? shape.shard_group * width / shape.expert : copies;
  const auto copy_of = [&](int64_t at) { return at / shape.expert; };
  const auto belongs = [&](int64_t at) {
    const bool same_experts = at % shape.expert == place % shape.expert;
    switch (role) {
      case Role::expert:
        return copy_of(at) == copy_of(place);
      case Role::expert_data:
        return same_experts;
      case Role::expert_shard:
        return same_experts && copy_of(at) / shards == copy_of(place) / shards;
      default:
        return same_experts && copy_of(at) % shards == copy_of(place) % shards;
    }
  };
  std::vector<int64_t> members;
  for (int64_t at = 0; at < static_cast<int64_t>(ranks.size()); ++at) {
    if (belongs(at)) members.push_back(ranks[static_cast<std::size_t>(at)]);
  }
  return members;
}

std::vector<int64_t> members_of(Role role, const MeshShape& shape, int64_t rank) {
  switch (role) {
    case Role::world: {
      std::vector<int64_t> all(static_cast<std::size_t>(shape.ranks()));
      for (std::size_t index = 0; index < all.size(); ++index) all[index] = static_cast<int64_t>(index);
      return all;
    }
    case Role::tensor:
      return shape.slice(Axis::tensor, rank);
    case Role::context:
      return shape.slice(Axis::context, rank);
    case Role::data:
      return shape.copies(rank);
    case Role::shard:
    case Role::replicas: {
      const std::vector<int64_t> copies = shape.copies(rank);
      const auto count = static_cast<int64_t>(copies.size());
      const int64_t group = shape.shard_group > 0 ? shape.shard_group : count;
      const int64_t place = std::find(copies.begin(), copies.end(), rank) - copies.begin();
      std::vector<int64_t> members;
      for (int64_t index = 0; index < count; ++index) {
        const bool is_in = role == Role::shard ? index / group == place / group : index % group == place % group;
        if (is_in) members.push_back(copies[static_cast<std::size_t>(index)]);
      }
      return members;
    }
    case Role::expert:
    case Role::expert_data:
    case Role::expert_shard:
    case Role::expert_replicas:
      return expert_members(role, shape, rank);
    case Role::tied: {
      const std::vector<int64_t> stages = shape.slice(Axis::pipeline, rank);
      if (rank == stages.front() || rank == stages.back()) {
        if (stages.size() > 1 && !shape.vee) return {stages.front(), stages.back()};
      }
      return {rank};
    }
    case Role::pipeline:
    case Role::forward:
    case Role::backward:
      return shape.slice(Axis::pipeline, rank);
  }
  throw InternalError("role {}", static_cast<int>(role));
}

bool may_share(Role role) {
  return role != Role::forward && role != Role::backward && role != Role::context && role != Role::expert;
}

}  // namespace

std::string to_string(Role role) {
  switch (role) {
    case Role::world:
      return "world";
    case Role::tensor:
      return "tensor";
    case Role::context:
      return "context";
    case Role::data:
      return "data";
    case Role::shard:
      return "shard";
    case Role::replicas:
      return "replicas";
    case Role::expert:
      return "expert";
    case Role::expert_data:
      return "expert_data";
    case Role::expert_shard:
      return "expert_shard";
    case Role::expert_replicas:
      return "expert_replicas";
    case Role::pipeline:
      return "pipeline";
    case Role::tied:
      return "tied";
    case Role::forward:
      return "forward";
    case Role::backward:
      return "backward";
  }
  throw InternalError("role {}", static_cast<int>(role));
}

int64_t MeshShape::size(Axis axis) const {
  switch (axis) {
    case Axis::pipeline:
      return pipeline;
    case Axis::data:
      return data;
    case Axis::context:
      return context;
    case Axis::tensor:
      return tensor;
  }
  throw InternalError("axis {}", static_cast<int>(axis));
}

int64_t MeshShape::coordinate(Axis axis, int64_t rank) const {
  switch (axis) {
    case Axis::pipeline:
      return rank / (data * context * tensor);
    case Axis::data:
      return rank / (context * tensor) % data;
    case Axis::context:
      return rank / tensor % context;
    case Axis::tensor:
      return rank % tensor;
  }
  throw InternalError("axis {}", static_cast<int>(axis));
}

int64_t MeshShape::rank_at(int64_t pipeline_index, int64_t data_index, int64_t tensor_index,
                           int64_t context_index) const {
  return ((pipeline_index * data + data_index) * context + context_index) * tensor + tensor_index;
}

std::vector<int64_t> MeshShape::slice(Axis axis, int64_t rank) const {
  const int64_t stride = axis == Axis::tensor    ? 1
                         : axis == Axis::context ? tensor
                         : axis == Axis::data    ? tensor * context
                                                 : tensor * context * data;
  const int64_t first = rank - coordinate(axis, rank) * stride;
  std::vector<int64_t> members(static_cast<std::size_t>(size(axis)));
  for (std::size_t index = 0; index < members.size(); ++index) {
    members[index] = first + static_cast<int64_t>(index) * stride;
  }
  return members;
}

std::vector<int64_t> MeshShape::copies(int64_t rank) const {
  std::vector<int64_t> members;
  for (const int64_t of_data :
       slice(Axis::data, rank_at(coordinate(Axis::pipeline, rank), 0, coordinate(Axis::tensor, rank)))) {
    for (const int64_t member : slice(Axis::context, of_data)) members.push_back(member);
  }
  return members;
}

std::vector<int64_t> MeshShape::expert_ranks(int64_t rank) const {
  const int64_t stage = ranks() / pipeline, first = rank / stage * stage;
  std::vector<int64_t> members;
  for (int64_t member = first; member < first + stage; ++member) {
    if (whole_experts || member % tensor == rank % tensor) members.push_back(member);
  }
  return members;
}

int64_t MeshShape::expert_coordinate(int64_t rank) const {
  const int64_t in_stage = rank % (ranks() / pipeline);
  return (whole_experts ? in_stage : in_stage / tensor) % expert;
}

std::vector<PlannedGroup> plan_groups(const MeshShape& shape, int64_t rank) {
  std::vector<PlannedGroup> groups;
  for (const Role role : all_roles) {
    PlannedGroup group;
    group.role = role;
    group.members = members_of(role, shape, rank);
    const auto self = std::find(group.members.begin(), group.members.end(), rank);
    RIDGELINE_ASSERT(self != group.members.end());
    group.rank = self - group.members.begin();
    if (may_share(role) && group.members.size() > 1) {
      const auto twin = std::find_if(groups.begin(), groups.end(), [&](const PlannedGroup& earlier) {
        return earlier.shares_with < 0 && may_share(earlier.role) && earlier.members == group.members;
      });
      if (twin != groups.end()) group.shares_with = static_cast<int>(twin - groups.begin());
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace ridgeline::mesh
