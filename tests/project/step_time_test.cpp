// The mean step of a long run from a short one's times: on drawn rows whose true mean is known.
#include "project/step_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "core/error.h"

namespace ridgeline::project {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using Times = std::vector<double>;

// Log-normal noise around a level that wanders and comes back (first-order autoregression).
Times noisy(size_t count, double noise, double persistence, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Times times;
  double level = normal(random);
  for (size_t i = 0; i < count; ++i) {
    level = persistence * level + std::sqrt(1 - persistence * persistence) * normal(random);
    times.push_back(0.5 * std::exp(noise * level));
  }
  return times;
}

double mean(const Times& times) {
  double sum = 0;
  for (const double time : times) sum += time;
  return sum / static_cast<double>(times.size());
}

TEST(StepTime, TheFirstFiftiethContainsTheMeanOfAll) {
  for (const double persistence : {0.0, 0.8, 0.95}) {
    int contained = 0, close = 0;
    for (unsigned seed = 0; seed < 100; ++seed) {
      const Times all = noisy(4000, 0.05, persistence, seed);
      const StepTime time = step_time(std::span(all).first(80), "run");
      const double truth = mean(all);
      contained += time.seconds.low <= truth && truth <= time.seconds.high;
      close += std::abs(time.seconds.middle / truth - 1) < 0.05;
    }
    EXPECT_GE(contained, 90) << persistence;
    if (persistence < 0.9) EXPECT_GE(close, 90) << persistence;  // else 80 steps are two independent ones
  }
}

TEST(StepTime, TheRangeIsNotWiderThanTheNoiseAsksFor) {
  const StepTime quiet = step_time(noisy(2000, 0.01, 0, 3), "run");
  EXPECT_LT(quiet.seconds.high / quiet.seconds.low, 1 + 2 * 1.8 * kRunVariation);
  const StepTime loud = step_time(noisy(60, 0.3, 0.5, 3), "run");
  EXPECT_GT(loud.seconds.high / loud.seconds.low, 1.1);
}

TEST(StepTime, WarmUpIsLeftOutAndRareSlowStepsAreNot) {
  Times times = noisy(1000, 0.02, 0, 1);
  for (size_t i = 0; i < 5; ++i) times[i] *= 10;
  for (size_t i = 100; i < 1000; i += 100) times[i] += 5;  // nine of them, 45 s in all
  const StepTime time = step_time(times, "run");
  EXPECT_EQ(time.warm_up, 5u);
  EXPECT_NEAR(time.slow_share, 9.0 / 995, 1e-12);
  EXPECT_NEAR(time.slow_seconds, 45.0 / 995, 0.001);
  EXPECT_NEAR(time.seconds.middle, 0.5 + 45.0 / 995, 0.005);
  EXPECT_GT(time.seconds.high - time.seconds.middle, 0.02);  // nine may have been twelve
  EXPECT_NEAR(time.median, 0.5, 0.01);
}

TEST(StepTime, UnseenSlowStepsWidenTheHighEndOfShortRunsAlone) {
  const StepTime brief = step_time(Times(20, 1.0), "run"), longer = step_time(Times(2000, 1.0), "run");
  EXPECT_GT(brief.seconds.high, 1.1);
  EXPECT_LT(longer.seconds.high, 1.04);
  EXPECT_DOUBLE_EQ(brief.seconds.middle, 1);
  EXPECT_DOUBLE_EQ(brief.seconds.low, longer.seconds.low);
}

TEST(StepTime, DriftIsFollowedAndSaid) {
  Times times = noisy(1200, 0.02, 0, 4);
  for (size_t i = 0; i < 1200; ++i) times[i] *= i >= 610 ? 2.2 : 2;  // too late for a warm-up
  const StepTime time = step_time(times, "run");
  EXPECT_TRUE(time.drifts);
  EXPECT_GT(time.seconds.middle, 1.05);
  EXPECT_GE(time.seconds.high, 1.1);
  EXPECT_FALSE(step_time(noisy(400, 0.05, 0.5, 9), "run").drifts);
}

TEST(StepTime, SeveralRunsShowHowRunsDiffer) {
  std::vector<Times> runs;
  for (const double level : {1.0, 1.1, 0.9, 1.05}) {
    Times run = noisy(100, 0.01, 0, static_cast<unsigned>(level * 100));
    for (double& time : run) time *= 2 * level;
    runs.push_back(run);
  }
  const StepTime time = step_time(runs, {"a", "b", "c", "d"});
  EXPECT_NEAR(time.seconds.middle, 1.0125, 0.01);
  EXPECT_NEAR(time.run_variation, 0.085, 0.01);
  EXPECT_LT(time.seconds.low, 0.85);
  EXPECT_GT(time.seconds.high, 1.15);
}

TEST(StepTime, ShortAndDamagedRowsAreRefused) {
  EXPECT_THAT([] { step_time(Times(9, 1.0), "runs/a"); },
              ThrowsMessage<InputError>(HasSubstr("runs/a: 9 steps, 0 of them warm-up: too short")));
  EXPECT_THAT([] { step_time(Times{}, "runs/a"); }, ThrowsMessage<InputError>(HasSubstr("too short")));
  for (const double wrong :
       {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    Times times(20, 1.0);
    times[7] = wrong;
    EXPECT_THAT([&] { step_time(times, "runs/a"); }, ThrowsMessage<InputError>(HasSubstr("step 8 of 20")));
  }
}

}  // namespace
}  // namespace ridgeline::project
