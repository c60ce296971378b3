// Schedules with a split backward keep every rule of check(), wait as little as their papers say, and keep no more than
// 1F1B does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/error.h"
#include "schedule/check.h"
#include "schedule/replay.h"

namespace ridgeline::schedule {
namespace {

using spec::ScheduleKind;

int64_t most_in_flight(const Schedule& schedule) {
  int64_t most = 0;
  for (int64_t stage = 0; stage < schedule.stages; ++stage) most = std::max(most, peak_in_flight(schedule, stage));
  return most;
}

TEST(ZeroBubble, CanBeExecutedAndKeepsWhatOneFOneBKeeps) {
  for (int64_t stages = 1; stages <= 9; ++stages) {
    for (int64_t micro_batches = 1; micro_batches <= 32; ++micro_batches) {
      SCOPED_TRACE(testing::Message() << stages << " stages, " << micro_batches << " micro-batches");
      const Schedule one_chunk = make_schedule(ScheduleKind::zero_bubble, stages, micro_batches);
      EXPECT_NO_THROW(check(one_chunk));
      for (int64_t stage = 0; stage < stages; ++stage) {
        EXPECT_EQ(peak_in_flight(one_chunk, stage), std::min(micro_batches, stages));
      }
      const Schedule vee = make_schedule(ScheduleKind::zero_bubble_v, stages, micro_batches);
      EXPECT_NO_THROW(check(vee));
      EXPECT_LE(most_in_flight(vee), 2 * std::min(micro_batches, stages));
    }
  }
}

// Before their backward for the input as many as in 1F1B, the rest of min(m, p) after it.
TEST(ZeroBubble, KeepsDeferredInputsOnLaterStages) {
  const Schedule schedule = make_schedule(ScheduleKind::zero_bubble, 4, 12);
  for (int64_t stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(peak_kept(schedule, stage, {{1, 0}}), 4 - stage);
    EXPECT_EQ(peak_kept(schedule, stage, {{0, 1}}), stage + 1);
    EXPECT_EQ(peak_kept(schedule, stage, {{10, 1}}), 10 * (4 - stage) + stage);
  }
}

TEST(ZeroBubble, WaitsAsLongAsTheorySays) {
  for (const auto& [forward, input, weight] :
       {std::tuple{1.0, 1.0, 1.0}, {1.0, 1.5, 0.5}, {2.0, 3.0, 1.0}, {1.0, 0.8, 1.2}}) {
    for (const int64_t stages : {1, 2, 4, 7}) {
      for (const int64_t micro_batches : {stages, stages + 1, 3 * stages, 10 * stages}) {
        const Replay result =
            replay(make_schedule(ScheduleKind::zero_bubble, stages, micro_batches), {forward, input, weight, 0});
        const double m = static_cast<double>(micro_batches), p = static_cast<double>(stages);
        const double expected = m * (forward + input + weight) + (p - 1) * (forward + std::max(0.0, input - weight));
        // A weight gradient longer than the rest makes the end wait a little.
        EXPECT_GE(result.makespan, expected - 1e-9);
        EXPECT_LE(result.makespan, expected + (weight > input ? (p - 1) * (weight - input) : 0) + 1e-9)
            << stages << ' ' << micro_batches << ' ' << weight;
      }
    }
  }
}

TEST(ZeroBubbleV, WaitsLeast) {
  for (const int64_t stages : {1, 2, 3, 4, 8, 16}) {
    for (const int64_t groups : {1, 2, 3, 8}) {
      const int64_t micro_batches = groups * stages;
      const auto seconds = [&](ScheduleKind kind, double pass) {
        return replay(make_schedule(kind, stages, micro_batches), {pass, pass, pass, 0}).makespan;
      };
      const double m = static_cast<double>(micro_batches), p = static_cast<double>(stages);
      const double vee = seconds(ScheduleKind::zero_bubble_v, 1.0);  // a chunk is half a stage
      EXPECT_GE(vee, 6 * m + p - 1);
      EXPECT_LE(vee, 6 * m + p - 1 + p / 3) << stages << ' ' << micro_batches;
      const double h1 = seconds(ScheduleKind::zero_bubble, 2.0), plain = seconds(ScheduleKind::one_f_one_b, 2.0);
      EXPECT_DOUBLE_EQ(plain - h1, 4 * (p - 1));
      if (stages > 1) {
        EXPECT_LT(vee, h1);
      }
    }
  }
}

// Lists that were made for the work that is done wait less than those made for equal work.
TEST(ZeroBubbleV, FollowsTheWork) {
  const spec::Strategy strategy{.pipeline = 4,
                                .schedule = ScheduleKind::zero_bubble_v,
                                .virtual_pipeline = 2,
                                .data = 1,
                                .micro_batch = 1,
                                .global_batch = 32};
  const Durations durations{10, 13, 7, 0};
  const Schedule made_for_it = make_schedule(strategy, std::vector<Work>(8, Work{10, 13, 7}));
  EXPECT_NO_THROW(check(made_for_it));
  const double with = replay(made_for_it, durations).makespan;
  const double without = replay(make_schedule(strategy), durations).makespan;
  EXPECT_LT(with, without);
  EXPECT_LT(with, 32 * 2 * 30 + 3 * 10 * 3) << "the bubble does not grow with the micro-batches";
}

TEST(ZeroBubbleV, CanBeExecutedWhateverTheWork) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 200; ++round) {
    const int64_t stages = 2 + static_cast<int64_t>(random() % 7);
    spec::Strategy strategy{
        .pipeline = stages, .schedule = ScheduleKind::zero_bubble_v, .virtual_pipeline = 2, .data = 1};
    strategy.global_batch = 1 + static_cast<int64_t>(random() % 24);
    std::vector<Work> work;
    const auto draw = [&] { return 1 + static_cast<int64_t>(random() % 2000); };
    for (int64_t piece = 0; piece < 2 * stages; ++piece) work.push_back({draw(), draw(), draw()});
    const Schedule schedule = make_schedule(strategy, work);
    EXPECT_NO_THROW(check(schedule)) << "round " << round;
    EXPECT_LE(most_in_flight(schedule), 2 * std::min(stages, strategy.micro_batches()));
  }
}

TEST(ZeroBubbleV, FirstAndLastPieceLieOnTheFirstStage) {
  const Schedule schedule = make_schedule(ScheduleKind::zero_bubble_v, 5, 3);
  EXPECT_EQ(holder(schedule, 0), (Place{0, 0}));
  EXPECT_EQ(holder(schedule, 9), (Place{0, 1}));
  EXPECT_EQ(holder(schedule, 5), (Place{4, 1}));
  const spec::Strategy strategy{.pipeline = 5, .schedule = ScheduleKind::zero_bubble_v, .virtual_pipeline = 2};
  for (const int64_t micro_batches : {1, 4, 13}) EXPECT_NO_THROW(check(make_forward_schedule(strategy, micro_batches)));
}

TEST(Schedule, RefusesWhatIsTooLongToList) {
  spec::Strategy strategy{.pipeline = 1000, .data = 1, .micro_batch = 1, .global_batch = 1'000'000'000};
  try {
    make_schedule(strategy);
    FAIL() << "a schedule of 10^12 pieces";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("too long a schedule"));
  }
}

}  // namespace
}  // namespace ridgeline::schedule
