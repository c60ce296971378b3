// The installed MPI launchers start this very program, whose ranks say what they detected.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "core/error.h"
#include "launch/environment.h"

namespace ridgeline::launch {
namespace {

// Not a test: what a rank does below.
TEST(Mpirun, DISABLED_SayWhatYouDetect) {
  const RankEnvironment environment = detect();
  std::printf("\ndetected %s\n", describe(environment).c_str());
}

struct Ranks {
  std::set<std::string> lines;  // without what is before the launcher's name
  std::set<std::string> ranks;
};

Ranks start(const std::string& mpirun, int ranks, const std::string& wrapper) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command = mpirun + " -n " + std::to_string(ranks) + " " + wrapper + " '" + self +
                              "' --gtest_also_run_disabled_tests --gtest_filter='*SayWhatYouDetect' </dev/null 2>&1";
  Ranks found;
  FILE* pipe = popen(command.c_str(), "r");
  std::array<char, 4096> buffer;
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) {
    const std::string line = buffer.data();
    const size_t at = line.find("detected rank");
    const size_t bracket = line.find("(local");
    if (at == std::string::npos || bracket == std::string::npos) continue;
    found.ranks.insert(line.substr(at + 9, bracket - at - 10));
    found.lines.insert(line.substr(line.find("of", bracket), line.find(')', bracket) - line.find("of", bracket)));
  }
  pclose(pipe);
  return found;
}

void expect_ranks_that_meet(const std::string& mpirun, const std::string& launcher, const std::string& wrapper = "") {
  const Ranks first = start(mpirun, 2, wrapper);
  EXPECT_THAT(first.ranks, testing::ElementsAre("rank 0 of 2", "rank 1 of 2"));
  ASSERT_EQ(first.lines.size(), 1u) << "the ranks do not agree where to meet";
  EXPECT_THAT(*first.lines.begin(), testing::StartsWith("of 2, " + launcher + ", rendezvous at 127.0.0.1:"));
  // Three jobs with one port would be no accident.
  const Ranks second = start(mpirun, 2, wrapper), third = start(mpirun, 2, wrapper);
  EXPECT_FALSE(first.lines == second.lines && first.lines == third.lines) << "jobs would meet each other";
}

bool is_installed(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null 2>&1").c_str()) == 0;
}

TEST(Mpirun, OpenMpi) {
  if (!is_installed("mpirun.openmpi")) GTEST_SKIP() << "mpirun.openmpi is not installed";
  expect_ranks_that_meet("mpirun.openmpi --oversubscribe --allow-run-as-root", "openmpi");
}

TEST(Mpirun, Mpich) {
  if (!is_installed("mpirun.mpich")) GTEST_SKIP() << "mpirun.mpich is not installed";
  expect_ranks_that_meet("mpirun.mpich", "mpich");
}

// The ranks' parent is then a shell of each rank's own, not the launcher.
TEST(Mpirun, MpichThroughAShell) {
  if (!is_installed("mpirun.mpich")) GTEST_SKIP() << "mpirun.mpich is not installed";
  expect_ranks_that_meet("mpirun.mpich", "mpich", "sh -c '\"$@\"; true' wrapped");
}

}  // namespace
}  // namespace ridgeline::launch
