#include "optim/learning_rate.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ridgeline::optim {
namespace {

spec::OptimizerSpec make(spec::DecayKind decay, int64_t warmup, int64_t decay_steps = 0) {
  spec::OptimizerSpec optimizer;
  optimizer.lr = 1.0;
  optimizer.min_lr = 0.0;
  optimizer.warmup_steps = warmup;
  optimizer.decay = decay;
  optimizer.decay_steps = decay_steps;
  return optimizer;
}

TEST(LearningRate, WarmsUpFromZero) {
  for (const auto decay : {spec::DecayKind::constant, spec::DecayKind::cosine, spec::DecayKind::linear,
                           spec::DecayKind::warmup_stable_decay}) {
    const auto optimizer = make(decay, 10);
    EXPECT_DOUBLE_EQ(learning_rate(optimizer, 100, 0), 0.1);
    EXPECT_DOUBLE_EQ(learning_rate(optimizer, 100, 4), 0.5);
    EXPECT_DOUBLE_EQ(learning_rate(optimizer, 100, 9), 1.0);
  }
}

// transformers' get_cosine_schedule_with_warmup(10, 110) after t = step + 1 calls: (1 + cos(pi (t - 10) / 100)) / 2.
TEST(LearningRate, CosineHasTheValuesOfTransformers) {
  const auto optimizer = make(spec::DecayKind::cosine, 10);
  EXPECT_NEAR(learning_rate(optimizer, 110, 34), 0.8535533905932737, 1e-12);  // t - 10 = 25: cos(pi / 4)
  EXPECT_NEAR(learning_rate(optimizer, 110, 59), 0.5, 1e-12);
  EXPECT_NEAR(learning_rate(optimizer, 110, 84), 0.14644660940672627, 1e-12);
  EXPECT_NEAR(learning_rate(optimizer, 110, 109), 0.0, 1e-12);
  EXPECT_NEAR(learning_rate(optimizer, 110, 5000), 0.0, 1e-12);
}

// get_linear_schedule_with_warmup(10, 110): (110 - t) / 100.
TEST(LearningRate, LinearHasTheValuesOfTransformers) {
  const auto optimizer = make(spec::DecayKind::linear, 10);
  EXPECT_NEAR(learning_rate(optimizer, 110, 10), 0.99, 1e-12);
  EXPECT_NEAR(learning_rate(optimizer, 110, 59), 0.5, 1e-12);
  EXPECT_NEAR(learning_rate(optimizer, 110, 108), 0.01, 1e-12);
  EXPECT_NEAR(learning_rate(optimizer, 110, 109), 0.0, 1e-12);
}

// get_wsd_schedule(10 warm-up, 70 stable, 20 decay steps, decay_type linear): 1 until t = 80, then (100 - t) / 20.
TEST(LearningRate, StableThenDecayHasTheValuesOfTransformers) {
  auto optimizer = make(spec::DecayKind::warmup_stable_decay, 10);
  optimizer.stable_fraction = 0.8;
  EXPECT_DOUBLE_EQ(learning_rate(optimizer, 100, 40), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(optimizer, 100, 79), 1.0);
  EXPECT_NEAR(learning_rate(optimizer, 100, 80), 0.95, 1e-12);
  EXPECT_NEAR(learning_rate(optimizer, 100, 89), 0.5, 1e-12);
  EXPECT_NEAR(learning_rate(optimizer, 100, 99), 0.0, 1e-12);
}

TEST(LearningRate, ConstantStays) {
  EXPECT_DOUBLE_EQ(learning_rate(make(spec::DecayKind::constant, 3), 100, 3), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(make(spec::DecayKind::constant, 0), 100, 1'000'000), 1.0);
}

TEST(LearningRate, FallsToTheMinimumAtDecaySteps) {
  auto optimizer = make(spec::DecayKind::cosine, 0, 50);
  optimizer.lr = 6e-4;
  optimizer.min_lr = 6e-5;
  EXPECT_NEAR(learning_rate(optimizer, 1000, 24), 3.3e-4, 1e-15);
  EXPECT_NEAR(learning_rate(optimizer, 1000, 49), 6e-5, 1e-15);
  EXPECT_NEAR(learning_rate(optimizer, 1000, 999), 6e-5, 1e-15);
}

TEST(LearningRate, NeverRisesAfterTheWarmup) {
  for (const auto decay : {spec::DecayKind::cosine, spec::DecayKind::linear, spec::DecayKind::warmup_stable_decay}) {
    for (const int64_t warmup : {0, 1, 20, 60}) {  // also a warm-up longer than the decay
      const auto optimizer = make(decay, warmup, 50);
      for (int64_t step = std::max<int64_t>(warmup, 1); step < 80; ++step) {
        ASSERT_LE(learning_rate(optimizer, 100, step), learning_rate(optimizer, 100, step - 1)) << step;
      }
    }
  }
}

}  // namespace
}  // namespace ridgeline::optim
