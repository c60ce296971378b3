#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/error.h"
#include "study/executor.h"
#include "study/processes.h"
#include "study/scratch.h"
#include "study/verdict.h"

namespace ridgeline::study {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// A program for one test: what `body` says to a shell.
RunOrder order_of(const Scratch& scratch, int64_t run, const std::string& body) {
  const std::string program = scratch.path("program-" + std::to_string(run));
  std::ofstream(program) << "#!/bin/sh\n" << body << "\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  return {.run = run,
          .study = std::filesystem::path(scratch.path("x")).parent_path().filename().string(),
          .command = {program},
          .folder = scratch.path(""),
          .log = scratch.path("log-" + std::to_string(run)),
          .ranks = 3};
}

Ending wait_for(Executor& executor, const std::string& handle) {
  while (true) {
    if (const auto ending = executor.poll(handle)) return *ending;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

void wait_for_file(const std::string& path) {
  while (!std::filesystem::exists(path)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

TEST(LocalExecutor, TellsHowARunEnded) {
  const Scratch scratch;
  const auto executor = make_executor({.slots = 3});
  const std::string good = executor->start(order_of(scratch, 1, "echo \"words: $@\"; echo $RIDGELINE_TRIAL >&2"));
  const std::string bad = executor->start(order_of(scratch, 2, "exit 7"));
  const std::string killed = executor->start(order_of(scratch, 3, "kill -SEGV $$"));
  EXPECT_FALSE(executor->has_room(1));
  EXPECT_EQ(wait_for(*executor, good).exit_code, 0);
  EXPECT_EQ(wait_for(*executor, bad).exit_code, 7);
  EXPECT_EQ(wait_for(*executor, killed).signal, SIGSEGV);
  EXPECT_TRUE(executor->has_room(1));
  const std::string log = tail_of(scratch.path("log-1"), 1000);
  EXPECT_THAT(log, HasSubstr("words: --nproc 3"));
  EXPECT_THAT(log, HasSubstr("/1\n"));
}

TEST(LocalExecutor, EndsAllThatARunStarted) {
  const Scratch scratch;
  const auto executor = make_executor({.slots = 2});
  const std::string ready = scratch.path("ready");
  // One in the group, one in a session of its own, one that ignores what it can.
  const RunOrder order = order_of(scratch, 1,
                                  "sleep 1000 & setsid sleep 1000 & (trap '' TERM INT HUP; sleep 1000) &\n"
                                  "sleep 0.1; touch " + ready + "; wait");
  const std::string handle = executor->start(order);
  wait_for_file(ready);
  EXPECT_GE(marked_processes(order.mark()).size(), 4u);
  executor->end(handle);
  EXPECT_THAT(marked_processes(order.mark()), IsEmpty());
  EXPECT_TRUE(executor->has_room(1));
}

TEST(LocalExecutor, LeavesNothingOverOfARunThatEndedByItself) {
  const Scratch scratch;
  const auto executor = make_executor({.slots = 1});
  const RunOrder order = order_of(scratch, 1, "setsid sleep 1000 &\nexit 0");
  const std::string handle = executor->start(order);
  EXPECT_EQ(wait_for(*executor, handle).exit_code, 0);
  EXPECT_THAT(marked_processes(order.mark()), IsEmpty());
}

TEST(LocalExecutor, AKilledTunersRunsEndAndTheRestIsFoundAgain) {
  const Scratch scratch;
  const std::string ready = scratch.path("ready"), written = scratch.path("handle");
  const RunOrder order = order_of(scratch, 1, "setsid sleep 1000 &\nsleep 1000 &\ntouch " + ready + "\nwait");
  const pid_t tuner = fork();
  if (tuner == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const auto executor = make_executor({.slots = 1});
    std::ofstream(written + ".part") << executor->start(order);
    std::filesystem::rename(written + ".part", written);
    while (true) pause();
  }
  wait_for_file(written);
  wait_for_file(ready);
  kill(tuner, SIGKILL);
  waitpid(tuner, nullptr, 0);
  std::string handle;
  std::getline(std::ifstream(written), handle);
  // The leader ends with its tuner; its children are found by their mark, with the handle or without.
  while (!identity_of(static_cast<pid_t>(std::stol(handle))).empty()) usleep(5000);
  EXPECT_THAT(marked_processes(order.mark()), testing::Not(IsEmpty()));
  const auto next = make_executor({.slots = 1});
  EXPECT_EQ(next->recover(order, ""), std::nullopt);
  EXPECT_THAT(marked_processes(order.mark()), IsEmpty());
  EXPECT_EQ(next->recover(order, handle), std::nullopt);
}

TEST(LocalExecutor, KeepsTheMemoryLimit) {
  const Scratch scratch;
  const auto executor = make_executor({.slots = 1});
  RunOrder order = order_of(scratch, 1, "ulimit -d");
  order.memory_limit_bytes = 64 * 1048576.0;
  wait_for(*executor, executor->start(order));
  EXPECT_EQ(tail_of(order.log, 100), "65536\n");  // KiB
}

TEST(LocalExecutor, SaysWhatCannotBeStarted) {
  const Scratch scratch;
  const auto executor = make_executor({.slots = 1});
  RunOrder order = order_of(scratch, 1, "");
  order.command = {scratch.path("nothing")};
  try {
    executor->start(order);
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("No such file"));
  }
  EXPECT_TRUE(executor->has_room(1));
}

TEST(SlurmExecutor, NeedsAnAllocation) {
  if (std::getenv("SLURM_JOB_ID") != nullptr) GTEST_SKIP() << "this is one";
  try {
    make_executor({.kind = "srun"});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("executor.kind = \"srun\""));
  }
}

}  // namespace
}  // namespace ridgeline::study
