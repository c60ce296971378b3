#include "mesh/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace ridgeline::mesh {
namespace {

using testing::ElementsAre;

TEST(MeshShape, OrdersRanksPipelineDataTensor) {
  const MeshShape shape{.pipeline = 2, .data = 3, .tensor = 4};
  EXPECT_EQ(shape.ranks(), 24);
  EXPECT_EQ(shape.rank_at(0, 0, 3), 3);
  EXPECT_EQ(shape.rank_at(0, 1, 0), 4);
  EXPECT_EQ(shape.rank_at(1, 0, 0), 12);
  EXPECT_THAT(shape.slice(Axis::tensor, 17), ElementsAre(16, 17, 18, 19));
  EXPECT_THAT(shape.slice(Axis::data, 17), ElementsAre(13, 17, 21));
  EXPECT_THAT(shape.slice(Axis::pipeline, 17), ElementsAre(5, 17));
}

TEST(MeshShape, ContextIsBetweenDataAndTensor) {
  const MeshShape shape{.pipeline = 2, .data = 3, .context = 2, .tensor = 4};
  EXPECT_EQ(shape.ranks(), 48);
  EXPECT_THAT(shape.slice(Axis::context, 17), ElementsAre(17, 21));
  EXPECT_THAT(shape.slice(Axis::data, 17), ElementsAre(1, 9, 17));
  EXPECT_THAT(shape.copies(17), ElementsAre(1, 5, 9, 13, 17, 21));
  EXPECT_THAT(shape.slice(Axis::pipeline, 17), ElementsAre(17, 41));
}

TEST(MeshShape, CoordinatesAndRanksAreInverse) {
  const MeshShape shape{.pipeline = 3, .data = 2, .context = 3, .tensor = 5};
  for (int64_t rank = 0; rank < shape.ranks(); ++rank) {
    EXPECT_EQ(shape.rank_at(shape.coordinate(Axis::pipeline, rank), shape.coordinate(Axis::data, rank),
                            shape.coordinate(Axis::tensor, rank), shape.coordinate(Axis::context, rank)),
              rank);
    for (const Axis axis : {Axis::pipeline, Axis::data, Axis::context, Axis::tensor}) {
      const auto slice = shape.slice(axis, rank);
      EXPECT_EQ(slice[static_cast<std::size_t>(shape.coordinate(axis, rank))], rank);
    }
  }
}

std::vector<int64_t> members(const MeshShape& shape, int64_t rank, Role role) {
  return plan_groups(shape, rank)[static_cast<std::size_t>(role)].members;
}

TEST(PlanGroups, LayExpertsOverNeighboursOfTheDataAxis) {
  const MeshShape shape{.pipeline = 2, .data = 4, .tensor = 2, .expert = 2};
  EXPECT_THAT(members(shape, 11, Role::expert), ElementsAre(9, 11));  // both of tensor rank 1
  EXPECT_THAT(members(shape, 11, Role::expert_data), ElementsAre(11, 15));
  EXPECT_THAT(members(shape, 11, Role::expert_shard), ElementsAre(11, 15));
  EXPECT_THAT(members(shape, 11, Role::expert_replicas), ElementsAre(11));
  EXPECT_EQ(shape.expert_coordinate(11), 1);
}

TEST(PlanGroups, LayWholeExpertsOverTheTensorAxisToo) {
  const MeshShape shape{.pipeline = 1, .data = 4, .tensor = 2, .shard_group = 2, .expert = 2, .whole_experts = true};
  EXPECT_THAT(members(shape, 5, Role::expert), ElementsAre(4, 5));
  EXPECT_THAT(members(shape, 5, Role::expert_data), ElementsAre(1, 3, 5, 7));
  EXPECT_THAT(members(shape, 5, Role::expert_shard), ElementsAre(5, 7));  // two ranks of data are one shard group
  EXPECT_THAT(members(shape, 5, Role::expert_replicas), ElementsAre(1, 5));
}

std::vector<MeshShape> shapes() {
  std::vector<MeshShape> all;
  for (const int64_t pipeline : {1, 2, 3, 4}) {
    for (const int64_t data : {1, 2, 3}) {
      for (const int64_t tensor : {1, 2, 4}) all.push_back({.pipeline = pipeline, .data = data, .tensor = tensor});
      for (const int64_t group : {1, 2}) {
        all.push_back({.pipeline = pipeline, .data = 2 * data, .tensor = 2, .shard_group = group});
      }
      for (const int64_t group : {0, 3, 6}) {
        all.push_back({.pipeline = pipeline, .data = 2 * data, .context = 3, .tensor = 2, .shard_group = group});
      }
      all.push_back({.pipeline = pipeline, .data = 2 * data, .tensor = 2, .expert = 2});
      all.push_back({.pipeline = pipeline, .data = data, .tensor = 4, .expert = 2, .whole_experts = true});
      all.push_back({.pipeline = pipeline, .data = data, .context = 2, .tensor = 2, .expert = 2});
    }
  }
  return all;
}

// All that the ranks of one mesh must agree on, checked over all of them.
TEST(PlanGroups, IsTheSameForAllMembersOfEachGroup) {
  for (const MeshShape& shape : shapes()) {
    std::vector<std::vector<PlannedGroup>> plans;
    for (int64_t rank = 0; rank < shape.ranks(); ++rank) plans.push_back(plan_groups(shape, rank));
    for (int64_t rank = 0; rank < shape.ranks(); ++rank) {
      const auto& plan = plans[static_cast<std::size_t>(rank)];
      ASSERT_EQ(plan.size(), all_roles.size());
      for (std::size_t index = 0; index < plan.size(); ++index) {
        const PlannedGroup& group = plan[index];
        EXPECT_EQ(group.members[static_cast<std::size_t>(group.rank)], rank);
        EXPECT_TRUE(std::is_sorted(group.members.begin(), group.members.end()));
        for (const int64_t member : group.members) {
          const PlannedGroup& same = plans[static_cast<std::size_t>(member)][index];
          EXPECT_EQ(same.members, group.members);
          EXPECT_EQ(same.shares_with, group.shares_with);
        }
      }
    }
  }
}

TEST(PlanGroups, MakesOneSetOfConnectionsForEqualMembers) {
  for (const MeshShape& shape : shapes()) {
    for (int64_t rank = 0; rank < shape.ranks(); ++rank) {
      std::map<std::vector<int64_t>, int> made;
      for (const PlannedGroup& group : plan_groups(shape, rank)) {
        const bool own = group.role == Role::forward || group.role == Role::backward || group.role == Role::context ||
                         group.role == Role::expert;
        if (group.members.size() == 1 || own) {
          EXPECT_EQ(group.shares_with, -1);
        }
        if (group.members.size() > 1 && group.shares_with < 0 && !own) ++made[group.members];
      }
      for (const auto& [members, count] : made) EXPECT_EQ(count, 1);
    }
  }
}

TEST(PlanGroups, SharesTheWorldWhereAnAxisIsAll) {
  const auto plan = plan_groups({.data = 4}, 2);
  EXPECT_EQ(plan[static_cast<std::size_t>(Role::world)].shares_with, -1);
  EXPECT_EQ(plan[static_cast<std::size_t>(Role::data)].shares_with, static_cast<int>(Role::world));
}

TEST(PlanGroups, CutsTheDataAxisInShardsAndReplicas) {
  const MeshShape shape{.pipeline = 1, .data = 4, .tensor = 2, .shard_group = 2};
  const auto plan = plan_groups(shape, 5);
  EXPECT_THAT(plan[static_cast<std::size_t>(Role::shard)].members, ElementsAre(5, 7));
  EXPECT_THAT(plan[static_cast<std::size_t>(Role::replicas)].members, ElementsAre(1, 5));
  const auto whole = plan_groups({.data = 4}, 2);
  EXPECT_EQ(whole[static_cast<std::size_t>(Role::shard)].members, whole[static_cast<std::size_t>(Role::data)].members);
  EXPECT_EQ(whole[static_cast<std::size_t>(Role::shard)].shares_with, static_cast<int>(Role::world));
  EXPECT_THAT(whole[static_cast<std::size_t>(Role::replicas)].members, ElementsAre(2));
}

TEST(PlanGroups, TiesFirstAndLastStage) {
  const MeshShape shape{.pipeline = 3, .data = 1, .tensor = 2};
  const auto tied = [&](int64_t rank) {
    return plan_groups(shape, rank)[static_cast<std::size_t>(Role::tied)].members;
  };
  EXPECT_THAT(tied(1), ElementsAre(1, 5));
  EXPECT_THAT(tied(5), ElementsAre(1, 5));
  EXPECT_THAT(tied(3), ElementsAre(3));
  // A V holds both ends on its first stage.
  const MeshShape vee{.pipeline = 3, .data = 1, .tensor = 2, .vee = true};
  EXPECT_THAT(plan_groups(vee, 1)[static_cast<std::size_t>(Role::tied)].members, ElementsAre(1));
  const auto two_stages = plan_groups({.pipeline = 2, .data = 2}, 1);
  EXPECT_EQ(two_stages[static_cast<std::size_t>(Role::tied)].shares_with, static_cast<int>(Role::pipeline));
}

}  // namespace
}  // namespace ridgeline::mesh
