#include "mesh/watchdog.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "core/error.h"
#include "mesh/failure_note.h"
#include "mesh/mesh.h"
#include "mesh/processes.h"
#include "mesh/ranks.h"

namespace ridgeline::mesh {
namespace {

using testing::HasSubstr;
using testing::Not;

void say(const std::string& text) { print_line(text + "\n"); }

[[noreturn]] void sleep_for_ever() {
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

// What one rank process of a scenario has.
struct Rank {
  launch::RankEnvironment environment;
  std::shared_ptr<Store> store;

  int rank() const { return environment.rank; }
  Mesh mesh() const {
    MeshOptions options = rank_options();
    options.timeout = 600;  // far beyond the tests' patience: no test passes by timeout
    return Mesh({.data = environment.world}, rank(), store, platform::Device::select("cpu"), options);
  }
};

void reduce_for_ever(const Mesh& mesh) {
  at::Tensor tensor = at::ones({100});
  while (true) mesh.world().all_reduce(tensor, Reduction::max).wait();
}

// Rank 2 finds fault with its input while the others reduce.
void input_error(const Rank& self, Watchdog& watchdog) {
  const Mesh mesh = self.mesh();
  watchdog.progress(4, "forward");
  if (self.rank() == 2) throw InputError("run.toml:7: the fault is here");
  reduce_for_ever(mesh);
}

// The main threads of the others do nothing that could ever end.
void hang(const Rank& self, Watchdog& watchdog) {
  if (self.rank() == 1) throw std::runtime_error("the odd one out");
  sleep_for_ever();
}

void many_at_once(const Rank& self, Watchdog& watchdog) { throw Failure("each rank sees it: disk full"); }

// Rank 1 closes its connections well before it says why.
void late_words(const Rank& self, Watchdog& watchdog) {
  {
    const Mesh mesh = self.mesh();
    if (self.rank() != 1) reduce_for_ever(mesh);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  throw Failure("the true cause");
}

void reduce_until_killed(const Rank& self, Watchdog& watchdog) {
  const Mesh mesh = self.mesh();
  watchdog.progress(12, "backward");
  std::this_thread::sleep_for(std::chrono::milliseconds(600));  // until a heartbeat has said so
  say("ready");
  reduce_for_ever(mesh);
}

void idle_until_killed(const Rank& self, Watchdog& watchdog) {
  watchdog.progress(12, "backward");
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  say("ready");
  sleep_for_ever();
}

// Ranks leave one after another, the first of them silent for much longer than `silence` before the last leaves.
void leave_in_turn(const Rank& self, Watchdog& watchdog) {
  std::this_thread::sleep_for(std::chrono::milliseconds(1200) * self.rank());
}
void leave_in_turn_backwards(const Rank& self, Watchdog& watchdog) {
  std::this_thread::sleep_for(std::chrono::milliseconds(1200) * (self.environment.world - 1 - self.rank()));
}

void ready_then_leave(const Rank& self, Watchdog& watchdog) {
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  say("ready");
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
}

const std::map<std::string, std::function<void(const Rank&, Watchdog&)>> scenarios = {
    {"input_error", input_error},
    {"hang", hang},
    {"many_at_once", many_at_once},
    {"late_words", late_words},
    {"reduce_until_killed", reduce_until_killed},
    {"idle_until_killed", idle_until_killed},
    {"leave_in_turn", leave_in_turn},
    {"leave_in_turn_backwards", leave_in_turn_backwards},
    {"ready_then_leave", ready_then_leave},
};

// The main function of the rank processes.
TEST(WatchdogRank, DISABLED_Main) {
  const char* scenario = std::getenv("SCENARIO");
  if (scenario == nullptr) GTEST_SKIP() << "runs only inside other tests";
  Rank self;
  self.environment.rank = std::atoi(std::getenv("SCENARIO_RANK"));
  self.environment.world = std::atoi(std::getenv("SCENARIO_WORLD"));
  self.environment.master_address = "127.0.0.1";
  self.environment.master_port = std::atoi(std::getenv("SCENARIO_PORT"));
  self.environment.rendezvous_file = std::getenv("SCENARIO_FILE");
  self.store = Store::open(self.environment, 60.0);
  WatchdogOptions options;
  options.poll = 0.1;
  options.beat = 0.2;
  options.silence = 3.0;
  options.grace = 2.0;
  Watchdog watchdog(self.store, self.environment.rank, self.environment.world, options);
  try {
    scenarios.at(scenario)(self, watchdog);
    watchdog.finish();
  } catch (const std::exception& error) {
    watchdog.fail(error);
  }
  _exit(0);
}

RankProcesses start(int count, const std::string& scenario, bool file_store = false) {
  return RankProcesses(count, "WatchdogRank.DISABLED_Main", scenario, file_store);
}

int occurrences(const std::string& text, const std::string& part) {
  int count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

class WatchdogOver : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Stores, WatchdogOver, testing::Bool(),
                         [](const auto& info) { return info.param ? "File" : "Tcp"; });

TEST_P(WatchdogOver, EndsAllWithTheWordsAndCodeOfTheOneThatFailed) {
  RankProcesses ranks = start(4, "input_error", GetParam());
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(ranks.exit_code(rank), 2) << rank << ": " << ranks.output(rank);
  EXPECT_THAT(ranks.output(2), HasSubstr("ridgeline: rank 2 failed: run.toml:7: the fault is here"));
  EXPECT_EQ(occurrences(ranks.all_output(), "the fault is here"), 1) << ranks.all_output();
}

TEST_P(WatchdogOver, EndsRanksWhoseMainThreadHangs) {
  RankProcesses ranks = start(3, "hang", GetParam());
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(ranks.exit_code(rank), 1);
  EXPECT_THAT(ranks.all_output(), HasSubstr("rank 1 failed: the odd one out"));
}

TEST_P(WatchdogOver, LetsRanksFinishInAnyOrder) {
  for (const char* scenario : {"leave_in_turn", "leave_in_turn_backwards"}) {
    RankProcesses ranks = start(4, scenario, GetParam());
    for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(ranks.exit_code(rank), 0) << ranks.output(rank);
    EXPECT_EQ(ranks.all_output(), "");
  }
}

TEST_P(WatchdogOver, NamesARankThatWasKilledAndWhereItWas) {
  for (const char* scenario : {"reduce_until_killed", "idle_until_killed"}) {
    RankProcesses ranks = start(4, scenario, GetParam());
    ranks.wait_for("ready");
    ranks.signal(2, SIGKILL);
    for (const int rank : {0, 1, 3}) EXPECT_EQ(ranks.exit_code(rank), 1) << ranks.output(rank);
    EXPECT_EQ(ranks.exit_code(2), -SIGKILL);
    EXPECT_THAT(ranks.all_output(), HasSubstr("rank 2 failed: its process"));
    EXPECT_THAT(ranks.all_output(), HasSubstr("ended without a word"));
    EXPECT_EQ(occurrences(ranks.all_output(), "failed:"), 1) << ranks.all_output();
  }
}

TEST(Watchdog, SaysWhenRankZeroIsGoneWithTheStore) {
  for (const char* scenario : {"reduce_until_killed", "idle_until_killed"}) {
    RankProcesses ranks = start(3, scenario);
    ranks.wait_for("ready");
    ranks.signal(0, SIGKILL);
    EXPECT_EQ(ranks.exit_code(0), -SIGKILL);
    for (const int rank : {1, 2}) EXPECT_EQ(ranks.exit_code(rank), 1);
    const std::string all = ranks.all_output();
    EXPECT_EQ(occurrences(all, "lost rank 0's store at 127.0.0.1"), 1) << all;
    EXPECT_THAT(all, HasSubstr("the process that holds it was killed or crashed"));
    EXPECT_EQ(occurrences(all, "\n"), 4) << "three times \"ready\" and one line for the machine: " << all;
  }
}

TEST(Watchdog, NamesARankThatFellSilent) {
  RankProcesses ranks = start(3, "idle_until_killed");
  ranks.wait_for("ready");
  ranks.signal(1, SIGSTOP);
  for (const int rank : {0, 2}) EXPECT_EQ(ranks.exit_code(rank), 1) << ranks.output(rank);
  EXPECT_THAT(ranks.all_output(),
              HasSubstr("rank 1 failed: no sign of life for 3 s; it was last at step 12, in \"backward\""));
}

TEST(Watchdog, ForgivesAPauseOfAllRanks) {
  RankProcesses ranks = start(2, "ready_then_leave");
  ranks.wait_for("ready");
  for (int rank = 0; rank < 2; ++rank) ranks.signal(rank, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(5));
  for (int rank = 0; rank < 2; ++rank) ranks.signal(rank, SIGCONT);
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(ranks.exit_code(rank), 0) << ranks.output(rank);
}

TEST(Watchdog, PrefersTheCauseToItsConsequences) {
  RankProcesses ranks = start(3, "late_words");
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(ranks.exit_code(rank), 1);
  EXPECT_EQ(occurrences(ranks.all_output(), "the true cause"), 1) << ranks.all_output();
  EXPECT_THAT(ranks.all_output(), Not(HasSubstr("all_reduce")));
}

TEST(Watchdog, SaysOnceWhatAllRanksSee) {
  RankProcesses ranks = start(4, "many_at_once");
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(ranks.exit_code(rank), 1);
  EXPECT_EQ(occurrences(ranks.all_output(), "disk full"), 1) << ranks.all_output();
}

TEST(Watchdog, LeavesAnotherJobAlone) {
  RankProcesses good = start(2, "leave_in_turn");
  RankProcesses bad = start(2, "hang");
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(bad.exit_code(rank), 1);
    EXPECT_EQ(good.exit_code(rank), 0) << good.output(rank);
  }
}

TEST(WatchdogDeathTest, OfOneRankPrintsAndEnds) {
  Watchdog alone(nullptr, 0, 1);
  alone.progress(1, "forward");
  alone.finish();
  EXPECT_EXIT(alone.fail(InputError("a.toml:1: no")), testing::ExitedWithCode(2), "ridgeline: a.toml:1: no");
  EXPECT_EXIT(alone.fail(std::runtime_error("no luck")), testing::ExitedWithCode(1), "ridgeline: no luck");
}

}  // namespace
}  // namespace ridgeline::mesh
