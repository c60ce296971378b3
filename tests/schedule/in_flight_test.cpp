// The closed form against counts in the lists of actions.
#include "schedule/in_flight.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>

#include "schedule/actions.h"
#include "schedule/check.h"

namespace ridgeline::schedule {
namespace {

using spec::ScheduleKind;

// The most micro-batches at once on one chunk.
int64_t most_on(const Schedule& schedule, const Place& place) {
  int64_t now = 0, most = 0;
  for (const Action& action : schedule.actions[place.stage]) {
    if (action.chunk != place.chunk) continue;
    if (action.kind == ActionKind::forward) most = std::max(most, ++now);
    if (action.kind == ActionKind::backward) --now;
  }
  return most;
}

void expect_agreement(const Schedule& schedule, ScheduleKind kind) {
  for (int64_t stage = 0; stage < schedule.stages; ++stage) {
    const InFlight most =
        most_in_flight(kind, schedule.stages, schedule.chunks_per_stage, schedule.micro_batches, stage);
    const std::string what = fmt::format("{} stages, {} chunks, {} micro-batches, stage {}", schedule.stages,
                                         schedule.chunks_per_stage, schedule.micro_batches, stage);
    EXPECT_EQ(most.pairs, peak_in_flight(schedule, stage)) << what;
    const Place first = *holder(schedule, 0), last = *holder(schedule, schedule.global_stages() - 1);
    EXPECT_EQ(most.embedding, first.stage == stage ? most_on(schedule, first) : 0) << what;
    EXPECT_EQ(most.head, last.stage == stage ? most_on(schedule, last) : 0) << what;
  }
}

TEST(InFlight, IsWhatTheListsHold) {
  for (int64_t stages = 1; stages <= 8; ++stages) {
    for (int64_t micro_batches = 1; micro_batches <= 32; ++micro_batches) {
      for (const ScheduleKind kind : {ScheduleKind::gpipe, ScheduleKind::one_f_one_b}) {
        expect_agreement(make_schedule(kind, stages, micro_batches), kind);
      }
      if (stages < 2 || micro_batches % stages != 0) continue;
      for (int64_t chunks = 2; chunks <= 5; ++chunks) {
        expect_agreement(make_interleaved_schedule(stages, chunks, micro_batches), ScheduleKind::one_f_one_b);
      }
    }
  }
}

}  // namespace
}  // namespace ridgeline::schedule
