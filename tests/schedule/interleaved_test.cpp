// Interleaved schedules keep every rule of check(), and their bubble is that of the paper.
#include <gtest/gtest.h>

#include "core/error.h"
#include "schedule/check.h"
#include "schedule/replay.h"

namespace ridgeline::schedule {
namespace {

TEST(Interleaved, IsCorrectForManySizes) {
  for (const int64_t stages : {2, 3, 4, 8}) {
    for (const int64_t chunks : {1, 2, 3, 5}) {
      for (const int64_t groups : {1, 2, 5}) {
        EXPECT_NO_THROW(check(make_interleaved_schedule(stages, chunks, groups * stages)))
            << stages << ' ' << chunks << ' ' << groups;
      }
    }
  }
}

// With two stages activations and gradients of different chunks share a link, which must hold two messages then.
TEST(Interleaved, TwoStagesNeedLinksOfTwoMessages) {
  for (const int64_t chunks : {2, 3}) {
    const Schedule schedule = make_interleaved_schedule(2, chunks, 8);
    EXPECT_EQ(schedule.link_capacity, 2) << chunks;
    EXPECT_EQ(least_link_capacity(schedule), 2) << chunks;
  }
  EXPECT_EQ(least_link_capacity(make_interleaved_schedule(3, 2, 6)), 1);
}

// Any number of micro-batches, wherever the chunks lie.
TEST(Interleaved, EvaluationGoesThroughAllChunks) {
  for (const int64_t stages : {2, 3, 8}) {
    for (const int64_t chunks : {2, 3}) {
      for (const int64_t micro_batches : {1, 3, 7, 16}) {
        const Schedule schedule =
            make_forward_schedule(spec::Strategy{.pipeline = stages, .virtual_pipeline = chunks}, micro_batches);
        EXPECT_NO_THROW(check(schedule)) << stages << ' ' << chunks << ' ' << micro_batches;
        EXPECT_LE(schedule.link_capacity, 2);
      }
    }
  }
}

TEST(Interleaved, IdleShareIsThatOfThePaper) {
  const int64_t stages = 4, micro_batches = 16;
  for (const int64_t chunks : {1, 2, 4}) {
    const Replay result = replay(make_interleaved_schedule(stages, chunks, micro_batches));
    ASSERT_TRUE(result.finished);
    EXPECT_NEAR(result.idle_share(), 3.0 / (chunks * micro_batches + 3.0), 1e-12) << chunks;
  }
}

TEST(Interleaved, KeepsMoreInFlightOnEarlierStages) {
  const Schedule schedule = make_interleaved_schedule(4, 2, 16);
  for (int64_t stage = 1; stage < 4; ++stage) {
    EXPECT_LT(peak_in_flight(schedule, stage), peak_in_flight(schedule, stage - 1));
  }
  EXPECT_EQ(peak_in_flight(schedule, 0), 2 * 3 + 4 + 1);
}

TEST(Interleaved, RefusesWhatDoesNotDivide) {
  EXPECT_THROW(make_interleaved_schedule(4, 2, 6), InputError);
  EXPECT_THROW(make_interleaved_schedule(1, 2, 4), InputError);
  EXPECT_THROW(make_interleaved_schedule(4, 0, 4), InputError);
}

}  // namespace
}  // namespace ridgeline::schedule
