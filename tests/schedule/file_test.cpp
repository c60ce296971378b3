// Schedules as text: what is written is read back, and a file that is no schedule, or none that can be executed, is
// refused with its line.
#include "schedule/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "core/error.h"
#include "schedule/check.h"

namespace ridgeline::schedule {
namespace {

using spec::ScheduleKind;
using testing::AllOf;
using testing::HasSubstr;

std::string complaint(const std::string& text) {
  try {
    parse_schedule(text, "my.schedule");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

const std::string head = "ridgeline-schedule 1\nstages 2\nchunks 1\nmicro_batches 2\nlayout round\n";
const std::string sound = head + "stage 0: F0 F1 B0 B1\nstage 1: F0 B0 F1 B1\n";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(ScheduleFile, WhatIsWrittenIsReadBack) {
  std::vector<Schedule> schedules;
  for (const auto kind :
       {ScheduleKind::gpipe, ScheduleKind::one_f_one_b, ScheduleKind::zero_bubble, ScheduleKind::zero_bubble_v}) {
    for (const int64_t stages : {1, 2, 5}) schedules.push_back(make_schedule(kind, stages, 7));
  }
  schedules.push_back(make_interleaved_schedule(2, 3, 8));
  schedules.push_back(make_interleaved_schedule(4, 2, 8));
  for (const Schedule& schedule : schedules) {
    const Schedule read = parse_schedule(to_text(schedule), "text");
    EXPECT_EQ(read.global_stage, schedule.global_stage);
    EXPECT_EQ(read.actions, schedule.actions);
    EXPECT_EQ(read.link_capacity, schedule.link_capacity);
  }
}

TEST(ScheduleFile, TakesCommentsAndAnyOrderThatCanBeExecuted) {
  EXPECT_EQ(complaint(sound), "");
  EXPECT_EQ(complaint("# mine\n\n" + replaced(sound, "F1 B0 B1", "F1 B0   B1 # last\r")), "");
  // The first stage sends micro-batch 1 first; the other one takes 0 first, so its message waits on the stage.
  EXPECT_EQ(complaint(head + "stage 0: F1 F0 B0 I1 W1\nstage 1: F0 B0 F1 I1 W1\n"), "");
}

TEST(ScheduleFile, NamesTheLineOfWhatIsWrong) {
  const std::pair<std::string, std::string> faults[] = {
      {"", "line 0: found '' where 'ridgeline-schedule 1'"},
      {replaced(sound, "schedule 1", "schedule 2"), "line 1: found 'ridgeline-schedule 2'"},
      {replaced(sound, "stages 2", "stages two"), "line 2: 'two' is no stages: expected 1 to"},
      {replaced(sound, "stages 2", "stages -2"), "line 2: '-2' is no stages"},
      {replaced(sound, "stages 2", "stages 99999999999999999999"), "line 2: "},
      {replaced(sound, "stages 2", "stages 2 2"), "line 2: '2' after the value of stages"},
      {replaced(sound, "chunks 1", "chunks"), "line 3: 'chunks' has no value"},
      {replaced(sound, "micro_batches 2", "micro_batches 50000000"), "line 4: 2 stages of 1 chunks with 50000000"},
      {replaced(sound, "micro_batches 2", "micro_batches 1000"),
       "line 4: 2 stages of 1 chunks with 1000 micro-batches take"},
      {replaced(sound, "round", "square"), "line 5: layout 'square'"},
      {replaced(sound, "round", "vee"), "line 5: a vee has 2 chunks"},
      {replaced(sound, "stage 1:", "stage 0:"), "line 7: expected 'stage 1:'"},
      {replaced(sound, "stage 1:", "stage 1"), "line 7: expected 'stage 1:'"},
      {replaced(sound, "B1\nstage", "B\nstage"), "line 6: 'B': expected F (forward)"},
      {replaced(sound, "B1\nstage", "B2\nstage"), "line 6: '2' is no micro-batch: expected 0 to 1"},
      {replaced(sound, "B1\nstage", "B1.1\nstage"), "line 6: '1' is no chunk: expected 0 to 0"},
      {replaced(sound, "B1\nstage", "X1\nstage"), "line 6: 'X1': expected F"},
      {replaced(sound, "B1\nstage", "B1 B1 B1 B1\nstage"), "line 6: stage 0 has more than 6 passes"},
      {sound + "stage 2: F0\n", "line 8: found 'stage 2: F0' after the last stage"},
      {head + "stage 0: F0 F1 B0 B1 F1 F1\n", "line 6: the file ends where 'stage' was expected"},
  };
  for (const auto& [text, expected] : faults) EXPECT_THAT(complaint(text), HasSubstr("my.schedule, " + expected));
}

TEST(ScheduleFile, RefusesWhatCannotBeExecuted) {
  EXPECT_THAT(complaint(replaced(sound, "F1 B0 B1", "F1 B0 B0")),
              AllOf(HasSubstr("cannot be executed"), HasSubstr("already done")));
  EXPECT_THAT(complaint(replaced(sound, "F0 F1 B0 B1", "F0 F1 B0 W1")),
              HasSubstr("backward_input(micro_batch 1, chunk 0) is missing"));
  EXPECT_THAT(complaint(replaced(sound, "F0 F1 B0 B1", "B0 F1 F0 B1")), HasSubstr("must precede"));
  EXPECT_THAT(complaint(head + "stage 0: F0 B0 F1 B1\nstage 1: F0 F1 B0 B1\n"), HasSubstr("deadlocks"));
}

// Bytes changed, cut and repeated at random: refused or a schedule that passes check, never anything else.
TEST(ScheduleFile, SurvivesDamage) {
  std::mt19937_64 random(3);
  const std::string whole = to_text(make_schedule(ScheduleKind::zero_bubble_v, 3, 4));
  int accepted = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = whole;
    for (uint64_t change = random() % 3 + 1; change > 0; --change) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random() % 256);
          break;
        case 1:
          text.resize(at + 1);
          break;
        case 2:
          text.insert(at, text.substr(random() % text.size(), random() % 20));
          break;
        default:
          text[at] = whole[random() % whole.size()];
      }
    }
    std::optional<Schedule> schedule;
    try {
      schedule = parse_schedule(text, "damaged");
    } catch (const InputError&) {
      continue;
    }
    ++accepted;
    EXPECT_NO_THROW(check(*schedule));
  }
  EXPECT_LT(accepted, 1000);
}

}  // namespace
}  // namespace ridgeline::schedule
