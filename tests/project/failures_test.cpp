// Plays of long runs beside Daly's closed form, and what must hold of each play.
#include "project/failures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"

namespace ridgeline::project {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr double kHour = 3600, kDay = 86400;
const Doubt kNoDoubt = {};

// Starts count as restarts from the first failure on in the formula, so that here they are none.
LongRun sixty_days(double mtbf_hours, double save, double restart) {
  LongRun run;
  run.mtbf = mtbf_hours * kHour;
  run.save = save;
  run.restart = restart;
  run.interval = 1800;
  run.work = 60 * kDay;  // whole intervals
  return run;
}

TEST(Failures, PlaysAgreeWithDalyToOnePercent) {
  for (const double mtbf_hours : {0.5, 3.0, 24.0, 500.0}) {
    for (const double save : {10.0, 300.0}) {
      for (const double restart : {60.0, 1800.0}) {
        const LongRun run = sixty_days(mtbf_hours, save, restart);
        const double played = play_many(run, kNoDoubt, 7, 800).whole.middle;
        EXPECT_NEAR(played / expected_seconds(run), 1, 0.01)
            << mtbf_hours << " h, " << save << " s, " << restart << " s";
      }
    }
  }
}

TEST(Failures, WithoutThemTimeIsWorkAndSaves) {
  LongRun run = sixty_days(1, 10, 60);
  run.mtbf = kNever;
  run.start = 100;
  const Spent spent = play(run, 1, 0);
  EXPECT_DOUBLE_EQ(spent.whole(), 100 + 60 * kDay + 10 * 60 * 48);
  EXPECT_DOUBLE_EQ(expected_seconds(run) + 100, spent.whole());
  EXPECT_EQ(spent.failures, 0);
}

TEST(Failures, BestIntervalIsTheBestAndNearDalysEstimate) {
  for (const double save : {5.0, 60.0, 600.0}) {
    for (const double mtbf : {1 * kHour, 10 * kHour, 1000 * kHour}) {
      LongRun run;
      run.work = 100 * kDay;
      run.save = save;
      run.mtbf = mtbf;
      const auto taken = [&](double interval) {
        run.interval = interval;
        return expected_seconds(run);
      };
      const double best = best_interval(save, mtbf);
      EXPECT_LE(taken(best), taken(best * 1.05));
      EXPECT_LE(taken(best), taken(best / 1.05));
      const double ratio = save / (2 * mtbf);
      const double daly = std::sqrt(2 * save * mtbf) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - save;
      EXPECT_NEAR(best / daly, 1, 0.01) << save << ' ' << mtbf;
    }
  }
  EXPECT_EQ(best_interval(10, kNever), kNever);
}

TEST(Failures, PartsAddUpAndAllWorkIsDone) {
  LongRun run = sixty_days(6, 60, 600);
  run.start = 300;
  run.job = 12 * kHour;
  run.wait = 5 * kHour;
  for (const bool ends_job : {false, true}) {
    run.failure_ends_job = ends_job;
    const Spent spent = play(run, 3, 5);
    EXPECT_NEAR(spent.work, run.work, 1e-3);
    EXPECT_GT(spent.failures, 100);
    EXPECT_GE(spent.jobs, spent.whole() / (40 * kHour));
    EXPECT_LE(spent.in_jobs(), spent.jobs * run.job * (1 + 1e-9));
    EXPECT_NEAR(spent.waits / spent.jobs / run.wait, 1, 0.4);
    if (ends_job) {
      EXPECT_EQ(spent.restarts, 0);  // each is another job's start
      EXPECT_GT(spent.jobs, spent.failures);
    }
  }
}

TEST(Failures, JobsWithoutFailuresLoseTheirStartsAndLastSaves) {
  LongRun run;
  run.work = 100 * kHour;
  run.start = 360;
  run.save = 360;
  run.job = 2 * kHour;  // 1.8 h of work each
  const Spent spent = play(run, 1, 1);
  EXPECT_EQ(spent.jobs, 56);
  EXPECT_DOUBLE_EQ(spent.starts, 56 * 360.0);
  EXPECT_NEAR(spent.whole(), 100 * kHour + 56 * 720.0, 1e-3);
}

TEST(Failures, PlaysAreAFunctionOfTheSeed) {
  const LongRun run = sixty_days(3, 60, 600);
  const Doubt doubt{.work = {0.9, 1, 1.2}, .mtbf = {0.5, 1, 2}};
  const Plays first = play_many(run, doubt, 11, 500), again = play_many(run, doubt, 11, 500);
  EXPECT_EQ(first.wholes, again.wholes);
  EXPECT_NE(first.wholes, play_many(run, doubt, 12, 500).wholes);
  EXPECT_LT(first.whole.low, first.whole.middle);
  EXPECT_LT(first.whole.middle, first.whole.high);
  EXPECT_GT(first.whole.high / first.whole.low, 1.2 / 0.9);  // the work's range, and the failures'
  EXPECT_LT(first.whole.high / first.whole.low, 2);
}

TEST(Failures, WhatCannotGetOnIsRefused) {
  LongRun run = sixty_days(1, 10, 60);
  run.job = 600;
  run.start = 595;
  EXPECT_THAT([&] { play(run, 1, 1); }, ThrowsMessage<InputError>(HasSubstr("use longer jobs")));
  run = sixty_days(0.01, 10, 60);
  EXPECT_THAT([&] { play_many(run, kNoDoubt, 1, 1); }, ThrowsMessage<InputError>(HasSubstr("save more often")));
}

}  // namespace
}  // namespace ridgeline::project
