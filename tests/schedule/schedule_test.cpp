// Properties of the schedules, for every size up to 8 stages and 32 micro-batches.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "core/error.h"
#include "schedule/actions.h"
#include "schedule/check.h"
#include "schedule/replay.h"

namespace ridgeline::schedule {
namespace {

using spec::ScheduleKind;

constexpr int64_t most_stages = 8;
constexpr int64_t most_micro_batches = 32;

void for_all_sizes(const std::function<void(int64_t stages, int64_t micro_batches)>& body) {
  for (int64_t stages = 1; stages <= most_stages; ++stages) {
    for (int64_t micro_batches = 1; micro_batches <= most_micro_batches; ++micro_batches) {
      SCOPED_TRACE(testing::Message() << stages << " stages, " << micro_batches << " micro-batches");
      body(stages, micro_batches);
    }
  }
}

class TrainingSchedule : public testing::TestWithParam<ScheduleKind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, TrainingSchedule, testing::Values(ScheduleKind::gpipe, ScheduleKind::one_f_one_b),
                         [](const testing::TestParamInfo<ScheduleKind>& tested) {
                           return tested.param == ScheduleKind::gpipe ? "gpipe" : "one_f_one_b";
                         });

TEST_P(TrainingSchedule, CanBeExecuted) {
  for_all_sizes([](int64_t stages, int64_t micro_batches) {
    EXPECT_NO_THROW(check(make_schedule(GetParam(), stages, micro_batches)));
  });
}

// Apart from check: each stage's list has one forward and one backward a micro-batch and a message for each inner edge.
TEST_P(TrainingSchedule, HasTheExpectedNumberOfActions) {
  for_all_sizes([](int64_t stages, int64_t micro_batches) {
    const Schedule schedule = make_schedule(GetParam(), stages, micro_batches);
    for (int64_t stage = 0; stage < stages; ++stage) {
      const int64_t neighbours = (stage > 0 ? 1 : 0) + (stage + 1 < stages ? 1 : 0);
      EXPECT_EQ(static_cast<int64_t>(schedule.actions[stage].size()), micro_batches * (2 + 2 * neighbours));
    }
  });
}

TEST_P(TrainingSchedule, RunsBackwardsInTheOrderOfForwards) {
  for_all_sizes([](int64_t stages, int64_t micro_batches) {
    const Schedule schedule = make_schedule(GetParam(), stages, micro_batches);
    for (const StageActions& list : schedule.actions) {
      int64_t forwards = 0, backwards = 0;
      for (const Action& action : list) {
        if (action.kind == ActionKind::forward) {
          EXPECT_EQ(action.micro_batch, forwards++);
        }
        if (action.kind == ActionKind::backward) {
          EXPECT_EQ(action.micro_batch, backwards++);
        }
      }
    }
  });
}

TEST_P(TrainingSchedule, KeepsAsManyMicroBatchesAsTheoryAllows) {
  for_all_sizes([](int64_t stages, int64_t micro_batches) {
    const Schedule schedule = make_schedule(GetParam(), stages, micro_batches);
    for (int64_t stage = 0; stage < stages; ++stage) {
      const int64_t expected =
          GetParam() == ScheduleKind::gpipe ? micro_batches : std::min(micro_batches, stages - stage);
      EXPECT_EQ(peak_in_flight(schedule, stage), expected) << "stage " << stage;
    }
  });
}

TEST_P(TrainingSchedule, IdlesAsLongAsTheorySays) {
  for_all_sizes([](int64_t stages, int64_t micro_batches) {
    const Schedule schedule = make_schedule(GetParam(), stages, micro_batches);
    for (const Durations& durations : {Durations{1, 1, 0, 0}, Durations{1, 1, 1, 0}, Durations{3, 1, 2, 0}}) {
      const double p = static_cast<double>(stages), m = static_cast<double>(micro_batches);
      const double both = durations.forward + durations.backward_input + durations.backward_weight;
      const Replay result = replay(schedule, durations);
      ASSERT_TRUE(result.finished);
      EXPECT_NEAR(result.makespan, (m + p - 1) * both, 1e-9);
      EXPECT_NEAR(result.idle_share(), (p - 1) / (m + p - 1), 1e-12);
    }
  });
}

TEST(ForwardSchedule, CanBeExecutedAndKeepsNothing) {
  for_all_sizes([](int64_t stages, int64_t micro_batches) {
    const Schedule schedule = make_forward_schedule(spec::Strategy{.pipeline = stages}, micro_batches);
    EXPECT_NO_THROW(check(schedule));
    const Replay result = replay(schedule);
    EXPECT_NEAR(result.makespan, static_cast<double>(micro_batches + stages - 1), 1e-9);
    for (int64_t stage = 0; stage < stages; ++stage) EXPECT_EQ(peak_in_flight(schedule, stage), 0);
  });
}

TEST(Schedule, MessagesGoToNeighbours) {
  const Schedule schedule = make_schedule(ScheduleKind::one_f_one_b, 3, 2);
  EXPECT_EQ(peer(schedule, 1, {ActionKind::send_activation, 0, 0}), 2);
  EXPECT_EQ(peer(schedule, 1, {ActionKind::receive_activation, 0, 0}), 0);
  EXPECT_EQ(peer(schedule, 1, {ActionKind::send_gradient, 0, 0}), 0);
  EXPECT_EQ(peer(schedule, 1, {ActionKind::receive_gradient, 0, 0}), 2);
  EXPECT_EQ(peer(schedule, 0, {ActionKind::receive_activation, 0, 0}), std::nullopt);
  EXPECT_EQ(peer(schedule, 2, {ActionKind::send_activation, 0, 0}), std::nullopt);
  EXPECT_EQ(peer(schedule, 1, {ActionKind::forward, 0, 0}), std::nullopt);
}

TEST(Schedule, OneFOneBOfTwoStagesReadsAsInThePaper) {
  const Schedule schedule = make_schedule(ScheduleKind::one_f_one_b, 2, 2);
  const StageActions first = {{ActionKind::forward, 0, 0},          {ActionKind::send_activation, 0, 0},
                              {ActionKind::forward, 1, 0},          {ActionKind::send_activation, 1, 0},
                              {ActionKind::receive_gradient, 0, 0}, {ActionKind::backward, 0, 0},
                              {ActionKind::receive_gradient, 1, 0}, {ActionKind::backward, 1, 0}};
  EXPECT_EQ(schedule.actions[0], first);
}

TEST(Schedule, RefusesSizesBelowOne) {
  EXPECT_THROW(make_schedule(ScheduleKind::gpipe, 0, 1), InputError);
  EXPECT_THROW(make_schedule(ScheduleKind::one_f_one_b, 2, 0), InputError);
  EXPECT_THROW(make_forward_schedule(spec::Strategy{}, -1), InputError);
}

}  // namespace
}  // namespace ridgeline::schedule
