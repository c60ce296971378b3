// The time that a run has left, and what it says of its plan.
#include "project/eta.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ridgeline::project {
namespace {

using testing::HasSubstr;

report::StepMetrics step(int64_t number, double seconds) {
  report::StepMetrics metrics;
  metrics.step = number;
  metrics.step_seconds = seconds;
  return metrics;
}

spec::TrainSpec training(int64_t steps) {
  spec::TrainSpec spec;
  spec.training.steps = steps;
  spec.checkpoint.at_end = false;
  return spec;
}

TEST(Eta, CountsStepsPausesEvaluationsAndSaves) {
  spec::TrainSpec spec = training(1000);
  spec.evaluation.every = 50;
  spec.checkpoint.every = 100;
  spec.checkpoint.at_end = true;  // which is one of them
  Eta eta(spec, std::nullopt);
  bool evaluated = false, saved = false;
  for (int64_t i = 1; i <= 220; ++i) {
    report::StepMetrics metrics = step(i, 1 + 0.01 * static_cast<double>(i % 3));
    metrics.pause_seconds = 0.1 + (evaluated ? 4 : 0) + (saved ? 20 : 0);
    if (saved) metrics.save_seconds = 20;
    evaluated = i % 50 == 0;
    saved = i % 100 == 0;
    if (evaluated) metrics.evaluation_seconds = 4;
    eta.add(metrics);
    if (i < 20) EXPECT_FALSE(eta.seconds_left());
  }
  EXPECT_NEAR(*eta.seconds_left(), 780 * 1.11 + 16 * 4 + 8 * 20, 3);
}

TEST(Eta, SlowFirstStepsDoNotCount) {
  Eta eta(training(10000), std::nullopt);
  for (int64_t i = 1; i <= 100; ++i) eta.add(step(i, i <= 5 ? 60 : 0.5));
  EXPECT_NEAR(*eta.seconds_left(), 9900 * 0.5, 1);
}

TEST(Eta, DeparturesAreSaidOnceAndOnlyWhenSure) {
  Eta slow(training(1000), 1.0);
  int said = 0;
  for (int64_t i = 1; i <= 300; ++i) {
    slow.add(step(i, 1.3));
    if (const auto text = slow.departure()) {
      ++said;
      EXPECT_GE(i, 50);
      EXPECT_THAT(*text, HasSubstr("+30 %"));
    }
  }
  EXPECT_EQ(said, 1);
  Eta fast(training(1000), 2.0), kept(training(1000), 1.25), unplanned(training(1000), std::nullopt);
  for (int64_t i = 1; i <= 60; ++i) {
    for (Eta* eta : {&fast, &kept, &unplanned}) eta->add(step(i, 1.3));
  }
  EXPECT_THAT(fast.departure().value_or(""), HasSubstr("-35 %"));
  EXPECT_FALSE(kept.departure());
  EXPECT_FALSE(unplanned.departure());
}

TEST(Eta, ARunThatRecoversSaysSo) {
  Eta eta(training(100000), 1.0);
  std::string last;
  for (int64_t i = 1; i <= 5000; ++i) {
    eta.add(step(i, i <= 500 ? 1.2 : 1.0));
    if (const auto text = eta.departure()) last = *text;
  }
  EXPECT_THAT(last, HasSubstr("keeps to its plan again"));
}

}  // namespace
}  // namespace ridgeline::project
