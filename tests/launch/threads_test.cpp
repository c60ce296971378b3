#include "launch/threads.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>

namespace ridgeline::launch {
namespace {

class Quota : public testing::Test {
 protected:
  void SetUp() override {
    root_ = testing::TempDir() + "/ridgeline-cgroup-test";
    std::filesystem::remove_all(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  std::string root_;
};

TEST_F(Quota, SmallestOfAllAncestors) {
  write("/a/cpu.max", "150000 100000\n");
  write("/a/b/cpu.max", "400000 100000\n");
  write("/a/b/c/cpu.max", "max 100000\n");
  EXPECT_EQ(cgroup_quota(root_, "0::/a/b/c\n"), 1.5);
  EXPECT_EQ(cgroup_quota(root_, "0::/\n"), 0);
}

TEST_F(Quota, RootCountsInAContainer) {
  write("/cpu.max", "200000 100000\n");
  EXPECT_EQ(cgroup_quota(root_, "0::/../elsewhere\n"), 2);
}

TEST_F(Quota, VersionOne) {
  write("/cpu/job/cpu.cfs_quota_us", "300000\n");
  write("/cpu/job/cpu.cfs_period_us", "100000\n");
  write("/cpu/free/cpu.cfs_quota_us", "-1\n");
  write("/cpu/free/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_quota(root_, "4:cpu,cpuacct:/job\n3:memory:/x\n"), 3);
  EXPECT_EQ(cgroup_quota(root_, "4:cpuacct,cpu:/free\n"), 0);
}

TEST_F(Quota, GarbageIsNoQuota) {
  write("/cpu.max", "soon\n");
  EXPECT_EQ(cgroup_quota(root_, "no colons\n:\n0::\n"), 0);
}

TEST(Threads, FollowTheAffinityMaskAndAreDivided) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_GE(usable_cores(), 1);
  EXPECT_LE(usable_cores(), CPU_COUNT(&before));
  RankEnvironment environment;
  EXPECT_EQ(threads_per_rank(environment), usable_cores());
  environment.local_world = 1000;
  EXPECT_EQ(threads_per_rank(environment), 1);
  environment.cores_are_own = true;
  EXPECT_EQ(threads_per_rank(environment), usable_cores());
  CPU_ZERO(&one);
  for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core) {
    if (CPU_ISSET(core, &before)) CPU_SET(core, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usable_cores(), 1);
  sched_setaffinity(0, sizeof before, &before);
}

}  // namespace
}  // namespace ridgeline::launch
