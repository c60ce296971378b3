#include "study/steady_state.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace ridgeline::study {
namespace {

std::vector<double> noisy(size_t count, double level, double noise, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal(0, noise);
  std::vector<double> values;
  for (size_t i = 0; i < count; ++i) values.push_back(level * std::exp(normal(engine)));
  return values;
}

TEST(SteadyState, KeepsAllStepsOfALevelRow) {
  size_t dropped_rows = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    dropped_rows += steady_state(noisy(20, 1.5, 0.05, seed)).dropped > 0 ? 1 : 0;
  }
  EXPECT_LE(dropped_rows, 30u);  // a step too many dropped costs little; but it must stay the exception
}

TEST(SteadyState, DropsASlowFirstStep) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::vector<double> seconds = noisy(8, 1.0, 0.02, seed);
    seconds[0] = 3.0;
    const SteadyState state = steady_state(seconds);
    EXPECT_GE(state.dropped, 1u) << seed;
    EXPECT_NEAR(state.seconds.median, 1.0, 0.05) << seed;
  }
}

TEST(SteadyState, DropsTwoLevelsOfWarmUp) {
  std::vector<double> seconds = noisy(20, 1.0, 0.01, 3);
  seconds[0] = 20.0;
  for (size_t i = 1; i < 6; ++i) seconds[i] *= 1.4;
  const SteadyState state = steady_state(seconds);
  EXPECT_EQ(state.dropped, 6u);
  EXPECT_EQ(state.steps, 14u);
}

TEST(SteadyState, ALateSpikeIsNoLevel) {
  std::vector<double> seconds = noisy(16, 1.0, 0.02, 5);
  seconds[6] = 9.0;
  EXPECT_EQ(steady_state(seconds).dropped, 0u);
}

TEST(SteadyState, EqualTimesAreSteady) {
  const SteadyState state = steady_state(std::vector<double>(8, 0.5));
  EXPECT_EQ(state.dropped, 0u);
  EXPECT_TRUE(state.is_tight(1e-9));
}

TEST(SteadyState, FewStepsAreNotTight) {
  EXPECT_FALSE(steady_state({}).is_tight(1));
  EXPECT_FALSE(steady_state({1.0, 1.0, 1.0}).is_tight(1));
}

TEST(MedianInterval, IsThatOfTheTables) {
  // n = 10: ranks 2 and 9 cover the median with 97.9 %, 3 and 8 with 89.1 % only.
  std::vector<double> samples;
  for (int i = 1; i <= 10; ++i) samples.push_back(i);
  const MedianInterval interval = median_interval(samples);
  EXPECT_EQ(interval.median, 5.5);
  EXPECT_EQ(interval.low, 2);
  EXPECT_EQ(interval.high, 9);
  const MedianInterval wider = median_interval(samples, 0.89);
  EXPECT_EQ(wider.low, 3);
  EXPECT_EQ(wider.high, 8);
}

TEST(MedianInterval, CoversTheMedianAsOftenAsItSays) {
  size_t covered = 0;
  constexpr size_t kRows = 400;
  for (unsigned seed = 0; seed < kRows; ++seed) {
    const MedianInterval interval = median_interval(noisy(12, 1.0, 0.3, seed));
    covered += interval.low <= 1.0 && 1.0 <= interval.high ? 1 : 0;
  }
  EXPECT_GE(covered, kRows * 92 / 100);
}

TEST(SurelyAbove, NeedsFiveSamples) {
  EXPECT_FALSE(surely_above({2, 2, 2, 2}, 0, 1));
  EXPECT_TRUE(surely_above({2, 2, 2, 2, 2}, 0, 1));
  EXPECT_FALSE(surely_above({9, 2, 2, 2, 2}, 1, 1));
  EXPECT_FALSE(surely_above({2, 2, 2, 2, 0.9}, 0, 1));
}

}  // namespace
}  // namespace ridgeline::study
