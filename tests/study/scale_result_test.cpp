#include "study/scale_result.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "spec/parameters.h"

namespace ridgeline::study {
namespace {

using Times = std::vector<std::pair<double, double>>;

Times amdahl(double serial, double noise, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  Times times;
  for (const double devices : {8.0, 16.0, 32.0, 64.0}) {
    for (int run = 0; run < 3; ++run) {
      times.emplace_back(devices, 10 * (serial + (1 - serial) * 8 / devices) * (1 + noise * normal(generator)));
    }
  }
  return times;
}

TEST(FitScaling, FindsTheSerialShare) {
  const ScaleFit fit = fit_scaling(ScaleKind::strong, amdahl(0.07, 0, 1));
  EXPECT_NEAR(fit.share.middle, 0.07, 1e-9);
  EXPECT_NEAR(fit.seconds, 10, 1e-9);
  EXPECT_NEAR(fit.residual, 0, 1e-9);
  EXPECT_NEAR(fit.share.high - fit.share.low, 0, 1e-6);
}

// A 95 % interval holds the truth in about 95 of 100 repetitions.
TEST(FitScaling, IntervalsHoldTheTruth) {
  int held = 0;
  constexpr int kRepeats = 400;
  for (unsigned seed = 1; seed <= kRepeats; ++seed) {
    const ScaleFit fit = fit_scaling(ScaleKind::strong, amdahl(0.07, 0.02, seed));
    held += fit.share.low <= 0.07 && 0.07 <= fit.share.high ? 1 : 0;
  }
  EXPECT_GT(held, 0.91 * kRepeats);
  EXPECT_LT(held, 0.99 * kRepeats);
}

TEST(FitScaling, FindsWhatADoublingAdds) {
  const ScaleFit fit = fit_scaling(ScaleKind::weak, {{4, 2.0}, {8, 2.1}, {16, 2.2}, {64, 2.4}});
  EXPECT_NEAR(fit.share.middle, 0.05, 1e-9);
  EXPECT_NEAR(fit.seconds, 2.0, 1e-9);
}

TEST(FitScaling, TwoPointsGiveNoInterval) {
  const ScaleFit fit = fit_scaling(ScaleKind::strong, {{1, 4.0}, {4, 1.75}});
  EXPECT_FALSE(fit.has_interval);
  EXPECT_NEAR(fit.share.middle, 0.25, 1e-9);
}

TEST(CriticalBatch, FollowsKaplansRuleUnlessMeasured) {
  const spec::ModelSpec model = spec::model_preset("gpt-175b");
  const CriticalBatch rule = critical_batch(model, 0);
  const double parameters = static_cast<double>(spec::parameter_count(model));
  EXPECT_NEAR(std::log(rule.tokens / 2e8), -0.076 / 0.21 * std::log(8.8e13 / parameters), 1e-9);
  EXPECT_NEAR(rule.early_tokens, 2e8 / std::pow(3.0, 1 / 0.21), 1);
  const CriticalBatch given = critical_batch(model, 4e6);
  EXPECT_TRUE(given.is_measured);
  EXPECT_EQ(given.tokens, 4e6);
  EXPECT_EQ(given.cost_of(4e6), 2);
}

}  // namespace
}  // namespace ridgeline::study
