#include "mesh/heartbeat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mesh/failure_note.h"

namespace ridgeline::mesh {
namespace {

TEST(Heartbeat, SurvivesTheStore) {
  const Heartbeat beat{7, 12, "backward", false, this_process()};
  const auto read = Heartbeat::from_text(beat.to_text());
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->count, 7u);
  EXPECT_EQ(read->where(), "at step 12, in \"backward\"");
  EXPECT_EQ(read->process.process, getpid());
  EXPECT_EQ(read->process.place, beat.process.place);
}

TEST(Heartbeat, DistrustsWhatItReads) {
  for (const char* text : {"", "{", "[]", "{\"count\": -1}", "{\"count\": \"x\", \"step\": 0}", "null"}) {
    EXPECT_FALSE(Heartbeat::from_text(text).has_value()) << text;
  }
  Heartbeat beat;
  beat.phase = "a\x1b[31mred\n" + std::string(1000, 'x') + "\xff";
  const auto read = Heartbeat::from_text(beat.to_text());
  ASSERT_TRUE(read.has_value());
  EXPECT_LE(read->phase.size(), 200u);
  EXPECT_THAT(read->phase, testing::Not(testing::HasSubstr("\x1b")));
}

TEST(ProcessName, TellsWhetherAProcessHasEnded) {
  EXPECT_FALSE(has_ended(this_process()));
  ProcessName namesake = this_process();
  namesake.start_time += 1;
  EXPECT_TRUE(has_ended(namesake));
  ProcessName elsewhere = this_process();
  elsewhere.place = "another machine";
  elsewhere.start_time += 1;
  EXPECT_FALSE(has_ended(elsewhere));

  const pid_t child = fork();
  if (child == 0) _exit(0);
  ProcessName ended = this_process();
  ended.process = child;
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(has_ended(ended)) << "a zombie";
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(has_ended(ended));
}

TEST(FailureNote, SurvivesTheStoreAndNeverSaysSuccess) {
  const FailureNote note{3, 2, "a \"quoted\"\nmessage \xc3\xa9"};
  const auto read = FailureNote::from_text(note.to_text());
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->message, note.message);
  EXPECT_EQ(read->exit_code, 2);
  EXPECT_EQ(read->line(), "ridgeline: rank 3 failed: a \"quoted\"\nmessage \xc3\xa9\n");
  const FailureNote far{3, 1, "no memory", true, "nid001"};
  EXPECT_EQ(FailureNote::from_text(far.to_text())->line(), "ridgeline: rank 3 failed: no memory [host nid001]\n");
  EXPECT_EQ(FailureNote::from_text(R"({"rank": 1, "exit_code": 0, "message": "", "by_itself": true})")->exit_code, 1);
  EXPECT_FALSE(FailureNote::from_text("{}").has_value());
}

}  // namespace
}  // namespace ridgeline::mesh
