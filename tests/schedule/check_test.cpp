// check must refuse every way of breaking a schedule, and accept shapes that no algorithm makes yet.
#include "schedule/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.h"
#include "schedule/replay.h"

namespace ridgeline::schedule {
namespace {

using spec::ScheduleKind;
using testing::AllOf;
using testing::HasSubstr;

std::string complaint(const Schedule& schedule) {
  try {
    check(schedule);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "";
}

Schedule sound() { return make_schedule(ScheduleKind::one_f_one_b, 3, 4); }

int64_t index_of(const StageActions& list, const Action& action) {
  const auto found = std::find(list.begin(), list.end(), action);
  EXPECT_NE(found, list.end()) << to_string(action);
  return found - list.begin();
}

TEST(Check, RefusesEveryMissingAction) {
  const Schedule whole = sound();
  for (int64_t stage = 0; stage < whole.stages; ++stage) {
    for (size_t i = 0; i < whole.actions[stage].size(); ++i) {
      Schedule broken = whole;
      broken.actions[stage].erase(broken.actions[stage].begin() + i);
      EXPECT_THAT(complaint(broken), AllOf(HasSubstr(fmt::format("stage {}", stage)), HasSubstr("is missing")));
    }
  }
}

TEST(Check, RefusesEveryRepeatedAction) {
  const Schedule whole = sound();
  for (int64_t stage = 0; stage < whole.stages; ++stage) {
    for (const Action& action : whole.actions[stage]) {
      Schedule broken = whole;
      broken.actions[stage].push_back(action);
      EXPECT_THAT(complaint(broken), AllOf(HasSubstr(to_string(action)), HasSubstr("already done")));
    }
  }
}

// A compute swapped with the message before or after it: each is a broken order.
TEST(Check, RefusesComputeBeforeItsInputAndSendBeforeItsResult) {
  Schedule late_receive = sound();
  StageActions& middle = late_receive.actions[1];
  std::swap(middle[index_of(middle, {ActionKind::receive_activation, 2, 0})],
            middle[index_of(middle, {ActionKind::forward, 2, 0})]);
  EXPECT_THAT(complaint(late_receive), AllOf(HasSubstr("stage 1: receive_activation(micro_batch 2, chunk 0)"),
                                             HasSubstr("must precede forward")));
  Schedule early_send = sound();
  StageActions& last = early_send.actions[2];
  std::swap(last[index_of(last, {ActionKind::backward, 1, 0})],
            last[index_of(last, {ActionKind::send_gradient, 1, 0})]);
  EXPECT_THAT(complaint(early_send),
              AllOf(HasSubstr("stage 2: backward(micro_batch 1, chunk 0)"), HasSubstr("must precede send_gradient")));
}

TEST(Check, RefusesMessagesReceivedInAnotherOrder) {
  Schedule schedule = make_schedule(ScheduleKind::gpipe, 2, 3);
  StageActions& last = schedule.actions[1];
  for (const ActionKind kind : {ActionKind::receive_activation, ActionKind::forward}) {
    std::swap(last[index_of(last, {kind, 0, 0})], last[index_of(last, {kind, 1, 0})]);
  }
  EXPECT_THAT(complaint(schedule), HasSubstr("message 0 from stage 0 to stage 1"));
}

// All rules within a stage hold, but each stage waits for the other.
TEST(Check, RefusesADeadlockAndNamesWhoWaits) {
  Schedule schedule = make_schedule(ScheduleKind::gpipe, 2, 2);
  StageActions& first = schedule.actions[0];
  first.clear();
  for (int64_t i = 0; i < 2; ++i) {
    first.insert(first.end(), {{ActionKind::forward, i, 0},
                               {ActionKind::send_activation, i, 0},
                               {ActionKind::receive_gradient, i, 0},
                               {ActionKind::backward, i, 0}});
  }
  EXPECT_THAT(complaint(schedule),
              AllOf(HasSubstr("deadlocks"), HasSubstr("stage 0 at action 2, receive_gradient(micro_batch 0, chunk 0)"),
                    HasSubstr("stage 1 at action 2, receive_activation(micro_batch 1, chunk 0)")));
}

// Two forwards ahead of a stage that takes one at a time: fine with unlimited links, stuck with room for one message.
TEST(Check, RefusesAScheduleThatNeedsLongLinks) {
  Schedule schedule = make_schedule(ScheduleKind::gpipe, 2, 4);
  StageActions& last = schedule.actions[1];
  last.clear();
  for (int64_t i = 0; i < 4; ++i) {
    last.insert(last.end(), {{ActionKind::receive_activation, i, 0},
                             {ActionKind::forward, i, 0},
                             {ActionKind::backward, i, 0},
                             {ActionKind::send_gradient, i, 0}});
  }
  EXPECT_TRUE(replay(schedule).finished);
  EXPECT_THAT(complaint(schedule), AllOf(HasSubstr("deadlocks with one message"), HasSubstr("stage 1 at action 7")));
}

TEST(Check, RefusesBackwardInEvaluationAndIllFormedSchedules) {
  Schedule evaluation = sound();
  evaluation.has_backward = false;
  EXPECT_THAT(complaint(evaluation), HasSubstr("must not be there"));
  Schedule out_of_range = sound();
  out_of_range.actions[1][0].micro_batch = 4;
  EXPECT_THAT(complaint(out_of_range), HasSubstr("out of range"));
  Schedule twice_held = sound();
  twice_held.global_stage[2][0] = 1;
  EXPECT_THAT(complaint(twice_held), HasSubstr("global stage"));
  Schedule beyond_the_end = sound();
  beyond_the_end.actions[2].push_back({ActionKind::send_activation, 0, 0});
  EXPECT_THAT(complaint(beyond_the_end), HasSubstr("must not be there"));
}

// A V-shaped placement: stage 0 holds global stages 0 and 3, stage 1 holds 1 and 2, which hand over without a message.
Schedule vee_of_two() {
  Schedule schedule{2, 2, 1, true, {{0, 3}, {1, 2}}, {}};
  schedule.actions.push_back({{ActionKind::forward, 0, 0},
                              {ActionKind::send_activation, 0, 0},
                              {ActionKind::receive_activation, 0, 1},
                              {ActionKind::forward, 0, 1},
                              {ActionKind::backward_input, 0, 1},
                              {ActionKind::send_gradient, 0, 1},
                              {ActionKind::backward_weight, 0, 1},
                              {ActionKind::receive_gradient, 0, 0},
                              {ActionKind::backward, 0, 0}});
  schedule.actions.push_back({{ActionKind::receive_activation, 0, 0},
                              {ActionKind::forward, 0, 0},
                              {ActionKind::forward, 0, 1},
                              {ActionKind::send_activation, 0, 1},
                              {ActionKind::receive_gradient, 0, 1},
                              {ActionKind::backward, 0, 1},
                              {ActionKind::backward, 0, 0},
                              {ActionKind::send_gradient, 0, 0}});
  return schedule;
}

TEST(Check, UnderstandsChunksAndSplitBackwards) {
  const Schedule schedule = vee_of_two();
  EXPECT_EQ(complaint(schedule), "");
  EXPECT_EQ(peak_in_flight(schedule, 0), 2);
  EXPECT_EQ(holder(schedule, 2), (Place{1, 1}));
  // The chain of compute is 12 units long, of which stage 0 takes the weights of chunk 1 while stage 1 runs.
  const Replay result = replay(schedule);
  EXPECT_DOUBLE_EQ(result.makespan, 11.0);
  EXPECT_DOUBLE_EQ(result.busy[0], 6.0);

  Schedule wrong_order = schedule;
  std::swap(wrong_order.actions[1][1], wrong_order.actions[1][2]);
  EXPECT_THAT(complaint(wrong_order), HasSubstr("must precede that of chunk 1"));
  Schedule half = schedule;
  half.actions[0].erase(half.actions[0].begin() + 6);
  EXPECT_THAT(complaint(half), HasSubstr("backward_weight(micro_batch 0, chunk 1) is missing"));
}

}  // namespace
}  // namespace ridgeline::schedule
