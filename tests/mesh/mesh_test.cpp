#include "mesh/mesh.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mesh/ranks.h"

namespace ridgeline::mesh {
namespace {

using testing::HasSubstr;

void check_groups(const MeshShape& shape, BackEndKind back_end = BackEndKind::automatic) {
  run_ranks(shape.ranks(), [&](int64_t rank, std::shared_ptr<Store> store) {
    MeshOptions options = rank_options();
    options.back_end = back_end;
    const Mesh mesh(shape, rank, store, platform::Device::select("cpu"), options);
    EXPECT_EQ(
        shape.rank_at(mesh.coordinate(Axis::pipeline), mesh.coordinate(Axis::data), mesh.coordinate(Axis::tensor)),
        rank);
    for (const Axis axis : {Axis::pipeline, Axis::data, Axis::tensor}) {
      const Communicator& group = mesh.group(axis);
      EXPECT_EQ(group.size(), mesh.size(axis));
      EXPECT_EQ(group.rank(), mesh.coordinate(axis));
      // The sum of the members' ranks tells who took part.
      at::Tensor sum = at::full({1}, rank, at::kLong);
      group.all_reduce(sum).wait();
      int64_t expected = 0;
      for (const int64_t member : shape.slice(axis, rank)) expected += member;
      EXPECT_EQ(sum.item<int64_t>(), expected);
    }
    at::Tensor all = at::full({1}, rank, at::kLong);
    mesh.world().all_reduce(all).wait();
    EXPECT_EQ(all.item<int64_t>(), shape.ranks() * (shape.ranks() - 1) / 2);
    at::Tensor ends = at::full({1}, rank, at::kLong);
    mesh.tied().all_reduce(ends).wait();
    int64_t expected = 0;
    for (const int64_t member : mesh.tied().members()) expected += member;
    EXPECT_EQ(ends.item<int64_t>(), expected);
  });
}

TEST(Mesh, GroupsAreSlices222) { check_groups({.pipeline = 2, .data = 2, .tensor = 2}); }
TEST(Mesh, GroupsAreSlices311) { check_groups({.pipeline = 3, .data = 1, .tensor = 1}); }
TEST(Mesh, GroupsAreSlices132) { check_groups({.pipeline = 1, .data = 3, .tensor = 2}); }
TEST(Mesh, GroupsAreSlices222OnGloo) { check_groups({.pipeline = 2, .data = 2, .tensor = 2}, BackEndKind::gloo); }
TEST(Mesh, GroupsAreSlices412Round) { check_groups({.pipeline = 4, .data = 1, .tensor = 2, .round = true}); }
TEST(Mesh, GroupsAreSlices311RoundOnGloo) { check_groups({.pipeline = 3, .round = true}, BackEndKind::gloo); }
TEST(Mesh, GroupsAreSlices311Vee) { check_groups({.pipeline = 3, .vee = true}); }
TEST(Mesh, GroupsAreSlices111) { check_groups({}); }

TEST(Mesh, SendsBothWaysAlongThePipelineAtOnce) {
  run_ranks(3, [&](int64_t rank, std::shared_ptr<Store> store) {
    const Mesh mesh({.pipeline = 3}, rank, store, platform::Device::select("cpu"), rank_options());
    const int64_t stage = mesh.coordinate(Axis::pipeline);
    const at::Tensor down = at::full({1000}, -1.0);
    const at::Tensor up = at::full({1000}, -1.0);
    std::vector<Work> works;
    if (stage < 2) works.push_back(mesh.backward_pipeline().receive(up, stage + 1));
    if (stage > 0) works.push_back(mesh.forward_pipeline().receive(down, stage - 1));
    if (stage < 2) works.push_back(mesh.forward_pipeline().send(at::full({1000}, 10.0 + rank), stage + 1));
    if (stage > 0) works.push_back(mesh.backward_pipeline().send(at::full({1000}, 20.0 + rank), stage - 1));
    for (Work& work : works) work.wait();
    // The ends of the line have nothing to receive from one side.
    EXPECT_TRUE(down.equal(at::full({1000}, stage > 0 ? 9.0 + rank : -1.0)));
    EXPECT_TRUE(up.equal(at::full({1000}, stage < 2 ? 21.0 + rank : -1.0)));
  });
}

TEST(Mesh, TwoJobsSideBySide) {
  std::thread other([] { check_groups({.pipeline = 1, .data = 2, .tensor = 2}); });
  check_groups({.pipeline = 2, .data = 1, .tensor = 2});
  other.join();
}

TEST(Mesh, SaysWhyNcclIsMissing) {
  if (have_nccl()) GTEST_SKIP() << "this build has NCCL";
  try {
    MeshOptions options = rank_options();
    options.back_end = BackEndKind::nccl;
    Mesh mesh({.data = 2}, 0, Store::in_process(), platform::Device::select("cpu"), options);
    FAIL() << "expected a Failure";
  } catch (const Failure& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("cmake/Nccl.cmake"));
  }
}

}  // namespace
}  // namespace ridgeline::mesh
