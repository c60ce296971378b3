// Whole trainings from a predicted or a recorded step: parts, energy, money, what-if.
#include "project/projection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "project/what_if.h"
#include "source_folder.h"
#include "spec/parameters.h"

namespace ridgeline::project {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

spec::TrainSpec gpt_22b(int64_t devices) {
  spec::TrainSpec spec;
  spec.model = spec::model_preset("gpt-22b");
  spec.precision.compute = spec::Precision::bf16;
  spec.strategy.pipeline = 8;
  spec.strategy.zero_stage = 1;
  spec.strategy.recompute = spec::Recompute::full;
  spec.strategy.global_batch = 1024;
  spec::derive_data(spec.strategy, spec.model, devices);
  return spec;
}

class Projections : public testing::Test {
 protected:
  void SetUp() override {
    setenv("RIDGELINE_MACHINES", RIDGELINE_SOURCE_DIR "/machines", 1);
    machine_ = spec::load_machine("frontier");
    steps_ = std::make_unique<StepModel>(gpt_22b(512), machine_, cost::recipe("ridgeline"));
    conditions_.tokens = 400e9;
    conditions_.devices = 512;
    conditions_.devices_per_node = 8;
    conditions_.power = machine_.power;
    conditions_.operation = machine_.operation;
    conditions_.operation.node_mtbf_hours = 5000;
    conditions_.plays = 1000;
  }
  void TearDown() override { unsetenv("RIDGELINE_MACHINES"); }

  spec::Machine machine_;
  std::unique_ptr<StepModel> steps_;
  Conditions conditions_;
};

TEST_F(Projections, WithoutFailuresTimeIsStepsAndTheRestIsSmall) {
  conditions_.fails = false;
  const Projection projection = project(*steps_, conditions_);
  const double step = steps_->seconds(512, 1024).middle;
  EXPECT_NEAR(projection.steps, 400e9 / (1024 * 2048), 1);
  EXPECT_NEAR(projection.spent.work / (projection.steps * step), 1, 0.01);
  EXPECT_NEAR(projection.days.middle * 86400, projection.spent.whole(), 1);
  EXPECT_NEAR(projection.device_hours.middle, projection.days.middle * 24 * 512, 1);
  EXPECT_NEAR(projection.node_hours.middle * 8, projection.device_hours.middle, 1);
  EXPECT_EQ(projection.spent.failures, 0);
  EXPECT_NEAR(projection.days.high / projection.days.low, 1.1 / 0.9, 0.02);
}

TEST_F(Projections, FailuresCostWhatDalySays) {
  const Projection projection = project(*steps_, conditions_);
  LongRun run;
  run.work = projection.spent.work;
  run.interval = projection.interval_seconds;
  run.save = projection.save_seconds;
  run.start = 300 + projection.save_seconds;
  run.restart = 600;
  run.mtbf = *projection.mtbf_seconds;
  EXPECT_NEAR(run.mtbf, 5000 * 3600.0 / 64, 1e-6);
  EXPECT_NEAR(projection.spent.whole() / expected_seconds(run), 1, 0.01);
  EXPECT_NEAR(projection.interval_seconds / best_interval(run.save, run.mtbf), 1, 0.1);
  EXPECT_NEAR(projection.checkpoint_bytes, 12.0 * static_cast<double>(spec::parameter_count(steps_->spec().model)), 1);
}

TEST_F(Projections, EnergyIsPowerTimesTime) {
  conditions_.power = {.busy_w = 200, .idle_w = 50, .node_other_w = 400, .pue = 1.5};
  conditions_.price_node_hour = 2;
  const Projection projection = project(*steps_, conditions_);
  const Spent& spent = projection.spent;
  const double busy = spent.work + spent.lost, waiting = spent.in_jobs() - busy;
  const double devices = 512 * (busy * 200 + waiting * 50) / 3.6e9;
  EXPECT_NEAR(projection.device_energy_mwh->middle, devices, 1e-6 * devices);
  const double all = 1.5 * (devices + 64 * 400 * spent.in_jobs() / 3.6e9);
  EXPECT_NEAR(projection.energy_mwh->middle, all, 1e-6 * all);
  EXPECT_NEAR(projection.cost->middle, 2 * projection.node_hours.middle, 1e-6);
  conditions_.power.busy_w = 0;
  EXPECT_FALSE(project(*steps_, conditions_).energy_mwh);
}

TEST_F(Projections, JobsOfLimitedLengthWaitAndStartAgain) {
  conditions_.job_hours = 2;
  conditions_.wait_hours = 6;
  const Projection projection = project(*steps_, conditions_);
  EXPECT_GT(projection.spent.jobs, projection.spent.in_jobs() / 7200);
  EXPECT_GT(projection.spent.waits, 2 * projection.spent.in_jobs());
  EXPECT_LT(projection.node_hours.middle, projection.days.middle * 24 * 64 / 2);  // waits cost no node-hours
  conditions_.job_hours = 0.085;
  EXPECT_THAT([&] { project(*steps_, conditions_); }, ThrowsMessage<InputError>(HasSubstr("use longer jobs")));
}

TEST_F(Projections, ARampTakesMoreAndSmallerSteps) {
  conditions_.fails = false;
  const double plain = project(*steps_, conditions_).spent.work;
  conditions_.ramp = BatchRamp{.start = 256, .increment = 256, .samples = 20e6};
  const Projection ramped = project(*steps_, conditions_);
  EXPECT_GT(ramped.steps, 400e9 / (1024 * 2048) + 10000);
  EXPECT_GT(ramped.ramp_seconds, 0);
  EXPECT_NEAR(ramped.spent.work - plain, ramped.ramp_seconds, 0.01 * plain);
  conditions_.ramp->increment = 100;
  EXPECT_THAT([&] { project(*steps_, conditions_); }, ThrowsMessage<InputError>(HasSubstr("in whole steps")));
  conditions_.ramp = BatchRamp{.start = 1000, .increment = 24, .samples = 1e6};
  EXPECT_THAT([&] { project(*steps_, conditions_); }, ThrowsMessage<InputError>(HasSubstr("does not divide")));
}

TEST_F(Projections, OptionsTradeTimeAgainstNodeHours) {
  const std::vector<Option> all = options(*steps_, conditions_, 2000, 6);
  ASSERT_GE(all.size(), 4u);
  for (size_t i = 1; i < all.size(); ++i) {
    EXPECT_GT(all[i].nodes, all[i - 1].nodes);
    EXPECT_LT(all[i].projection.days.middle, all[i - 1].projection.days.middle);
    EXPECT_GE(all[i].projection.node_hours.middle, 0.99 * all[i - 1].projection.node_hours.middle);
  }
  EXPECT_LE(all.back().nodes, 2000);
}

TEST_F(Projections, ADeadlineIsMetByTheFewestNodesAndABudgetIsSpent) {
  const std::optional<Option> likely = fewest_nodes(*steps_, conditions_, 2000, 20, false);
  ASSERT_TRUE(likely);
  EXPECT_LE(likely->projection.days.middle, 20);
  for (const Option& option : options(*steps_, conditions_, likely->nodes - 1, 20)) {
    EXPECT_GT(option.projection.days.middle, 20) << option.nodes;
  }
  EXPECT_GE(fewest_nodes(*steps_, conditions_, 2000, 20, true)->nodes, likely->nodes);
  EXPECT_FALSE(fewest_nodes(*steps_, conditions_, 2000, 0.001, false));
  const double tokens = most_tokens(*steps_, conditions_, 20000);
  conditions_.tokens = tokens;
  EXPECT_NEAR(project(*steps_, conditions_).node_hours.middle, 20000, 200);
}

TEST_F(Projections, ComputeOptimalIsTwentyTokensAParameter) {
  EXPECT_NEAR(compute_optimal_tokens(spec::model_preset("gpt-175b")), 20 * 175e9, 0.02 * 20 * 175e9);
}

}  // namespace
}  // namespace ridgeline::project
