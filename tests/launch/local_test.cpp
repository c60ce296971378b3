#include "launch/local.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/error.h"
#include "core/log.h"

namespace ridgeline::launch {
namespace {

using testing::HasSubstr;
using testing::Not;

// Ranks are shell scripts that leave their traces in a folder.
class LocalRanks : public testing::Test {
 protected:
  void SetUp() override {
    set_up_log();
    folder_ = testing::TempDir() + "/ridgeline-local-test-XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  LocalRun script(const std::string& text, int ranks) const {
    return {.command = {"/bin/sh", "-c", text}, .ranks = ranks, .variables = {{"OUT", folder_}}, .grace_seconds = 0.2};
  }
  std::string read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder_ + "/" + name).rdbuf();
    return text.str();
  }
  // Waits until a script has written `name` whole.
  std::string wait_for(const std::string& name) const {
    for (int tries = 0; tries < 3000; ++tries, usleep(10'000)) {
      const std::string text = read(name);
      if (!text.empty() && text.back() == '\n') return text;
    }
    return "";
  }
  // Whether the process ends; what nobody has collected counts as ended.
  static bool ends(pid_t process) {
    for (int tries = 0; tries < 3000; ++tries, usleep(10'000)) {
      std::ifstream stream("/proc/" + std::to_string(process) + "/stat");
      std::string line;
      if (!std::getline(stream, line) || line.substr(line.rfind(')') + 2, 1) == "Z") return true;
    }
    return false;
  }
  std::string folder_;
};

TEST_F(LocalRanks, AreToldWhoTheyAre) {
  const int code =
      run_local_ranks(script("echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $MASTER_ADDR $RIDGELINE_LAUNCHER "
                             "$(dirname $RIDGELINE_RENDEZVOUS_FILE) > $OUT/$RANK",
                             3));
  EXPECT_EQ(code, 0);
  std::string scratch;
  for (const char* rank : {"0", "1", "2"}) {
    std::istringstream words(read(rank));
    std::string r, world, local, local_world, address, launcher, folder;
    words >> r >> world >> local >> local_world >> address >> launcher >> folder;
    EXPECT_EQ(r, rank);
    EXPECT_EQ(local, rank);
    EXPECT_EQ(world, "3");
    EXPECT_EQ(local_world, "3");
    EXPECT_EQ(address, "127.0.0.1");
    EXPECT_EQ(launcher, "local");
    if (scratch.empty()) scratch = folder;
    EXPECT_EQ(folder, scratch);
  }
  EXPECT_FALSE(std::filesystem::exists(scratch)) << "the rendezvous folder is left over";
}

TEST_F(LocalRanks, FirstFailureEndsTheOthers) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_local_ranks(script("[ $RANK = 1 ] && exit 7; exec sleep 1000", 3)), 7);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("rank 1 ended with exit code 7"));
}

TEST_F(LocalRanks, ThoseThatIgnoreTermAreKilled) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_local_ranks(script("trap '' TERM; [ $RANK = 1 ] && exit 5; while :; do sleep 0.05; done", 2)), 5);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("sending SIGKILL"));
}

TEST_F(LocalRanks, DeathBySignalIsNamed) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_local_ranks(script("[ $RANK = 2 ] && kill -9 $$; exec sleep 1000", 3)), 1);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("rank 2 was killed by signal 9 (out of memory?)"));
}

TEST_F(LocalRanks, OutputIsPassedOnByLines) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_local_ranks(script("printf a; sleep 0.1; echo b$RANK; echo c$RANK >&2; printf \"end$RANK\"", 2)), 0);
  const std::string output = testing::internal::GetCapturedStdout();
  const std::string errors = testing::internal::GetCapturedStderr();
  EXPECT_THAT(output, HasSubstr("ab1\n"));
  EXPECT_THAT(output, HasSubstr("end1\n"));
  EXPECT_THAT(output, HasSubstr("b0\n"));
  EXPECT_THAT(errors, HasSubstr("[rank 1] c1\n"));
  EXPECT_THAT(errors, HasSubstr("c0\n"));
  EXPECT_THAT(errors, Not(HasSubstr("[rank 0]")));
}

TEST_F(LocalRanks, MuchOutputDoesNotBlock) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_local_ranks(script("[ $RANK = 0 ] || seq 1 100000", 2)), 0);
  EXPECT_THAT(testing::internal::GetCapturedStdout(), testing::EndsWith("\n100000\n"));
}

TEST_F(LocalRanks, InputIsEmpty) { EXPECT_EQ(run_local_ranks(script("! read line", 2)), 0); }

TEST_F(LocalRanks, HelpersOfARankDoNotOutliveIt) {
  EXPECT_EQ(run_local_ranks(script("sleep 1000 & echo $! > $OUT/helper$RANK", 2)), 0);
  for (const char* name : {"helper0", "helper1"}) EXPECT_TRUE(ends(std::stoi(read(name))));
}

TEST_F(LocalRanks, WrongUseIsRefused) {
  EXPECT_THROW(run_local_ranks({.command = {"/nonexistent/program"}, .ranks = 2}), Failure);
  EXPECT_THROW(run_local_ranks(script("true", 0)), InputError);
  EXPECT_THROW(run_local_ranks(script("true", 100000)), InputError);
}

TEST_F(LocalRanks, InterruptsAreForwarded) {
  const pid_t launcher = fork();
  if (launcher == 0) {
    const LocalRun run = script(
        "trap 'echo saved > $OUT/saved$RANK; exit 3' INT; echo ready > $OUT/ready$RANK; "
        "while :; do sleep 0.05; done",
        2);
    _exit(run_local_ranks(run));
  }
  wait_for("ready0");
  wait_for("ready1");
  kill(launcher, SIGINT);
  int status = 0;
  ASSERT_EQ(waitpid(launcher, &status, 0), launcher);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 3);
  EXPECT_EQ(read("saved0"), "saved\n");
  EXPECT_EQ(read("saved1"), "saved\n");
}

TEST_F(LocalRanks, SecondInterruptKills) {
  const pid_t launcher = fork();
  if (launcher == 0) {
    const LocalRun run = script(
        "trap 'echo heard > $OUT/heard$RANK' INT; echo ready > $OUT/ready$RANK; while :; do sleep 0.05; done", 2);
    _exit(run_local_ranks(run));
  }
  wait_for("ready0");
  wait_for("ready1");
  kill(launcher, SIGINT);
  wait_for("heard0");
  wait_for("heard1");
  kill(launcher, SIGINT);
  int status = 0;
  ASSERT_EQ(waitpid(launcher, &status, 0), launcher);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

TEST_F(LocalRanks, DieWithTheLauncher) {
  const pid_t launcher = fork();
  if (launcher == 0) _exit(run_local_ranks(script("echo $$ > $OUT/pid$RANK; exec sleep 1000", 2)));
  const int first = std::stoi(wait_for("pid0"));
  const int second = std::stoi(wait_for("pid1"));
  kill(launcher, SIGKILL);
  waitpid(launcher, nullptr, 0);
  EXPECT_TRUE(ends(first));
  EXPECT_TRUE(ends(second));
}

}  // namespace
}  // namespace ridgeline::launch
