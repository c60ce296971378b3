// Recorded runs: what is read of a run folder, and what is refused and why.
#include "project/recorded_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "core/temporary_folder.h"
#include "cost/flops.h"
#include "project/step_model.h"
#include "report/metrics.h"
#include "spec/config.h"

namespace ridgeline::project {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class RecordedRuns : public testing::Test {
 protected:
  void SetUp() override {
    spec_.strategy.pipeline = 2;
    spec_.strategy.global_batch = 16;
    spec_.evaluation.every = 10;
  }

  std::string folder(const std::string& name) { return folder_.path(name); }

  // `devices` of the strategy; a step of `seconds`.
  report::StepMetrics line(int64_t step, double seconds, int64_t devices = 4) {
    spec::Strategy strategy = spec_.strategy;
    spec::derive_data(strategy, spec_.model, devices);
    report::StepMetrics metrics;
    metrics.step = step;
    metrics.tokens = step * strategy.global_batch * spec_.model.sequence;
    metrics.step_seconds = seconds;
    metrics.tflops_per_device =
        cost::step_model_flops(spec_.model, strategy) / seconds / static_cast<double>(devices) / 1e12;
    return metrics;
  }

  void write_run(const std::string& name, const std::vector<report::StepMetrics>& lines) {
    std::filesystem::create_directories(folder(name));
    std::ofstream(folder(name) + "/config.toml") << spec::to_toml(spec_);
    std::ofstream file(folder(name) + "/metrics.jsonl");
    for (const report::StepMetrics& metrics : lines) file << to_json_line(metrics) << '\n';
  }

  std::vector<report::StepMetrics> lines(int64_t count, double seconds, int64_t devices = 4) {
    std::vector<report::StepMetrics> all;
    for (int64_t step = 1; step <= count; ++step) all.push_back(line(step, seconds + 0.001 * (step % 5), devices));
    return all;
  }

  TemporaryFolder folder_;
  spec::TrainSpec spec_;
};

TEST_F(RecordedRuns, DevicesFollowFromRatesAndPausesAreTakenApart) {
  auto all = lines(40, 0.2);
  all[0].start_seconds = 9;
  all[9].evaluation_seconds = 3;
  all[10].pause_seconds = 3 + 2 + 0.25;
  all[10].save_seconds = 2;
  all[20].pause_seconds = 0.15;
  write_run("a", all);
  for (const std::string& path : {folder("a"), folder("a") + "/metrics.jsonl"}) {
    const RecordedRun run = read_recorded_run(path);
    EXPECT_EQ(run.devices, 4);
    EXPECT_EQ(run.spec.strategy.data, 2);
    EXPECT_EQ(run.step_seconds.size(), 40u);
    EXPECT_EQ(run.start_seconds, 9);
    EXPECT_EQ(run.evaluation_seconds, 3);
    EXPECT_EQ(run.save_seconds, 2);
    EXPECT_NEAR(run.pause_seconds, 0.4 / 40, 1e-12);
  }
}

TEST_F(RecordedRuns, StepsBeforeAResumeOnOtherDevicesAreLeftOut) {
  auto all = lines(30, 0.2, 2);
  for (int64_t step = 31; step <= 60; ++step) all.push_back(line(step, 0.1, 4));
  write_run("a", all);
  const RecordedRun run = read_recorded_run(folder("a"));
  EXPECT_EQ(run.devices, 4);
  EXPECT_EQ(run.step_seconds.size(), 30u);
  EXPECT_EQ(run.finished_steps, 60);
}

TEST_F(RecordedRuns, WhatDoesNotBelongTogetherIsSaid) {
  write_run("a", lines(40, 0.2));
  write_run("b", lines(40, 0.2, 8));
  const auto together = [&] { StepModel({read_recorded_run(folder("a")), read_recorded_run(folder("b"))}); };
  EXPECT_THAT(together, ThrowsMessage<InputError>(AllOf(HasSubstr("ran on 4 devices"), HasSubstr("on 8"))));
  spec_.strategy.micro_batch = 2;
  write_run("b", lines(40, 0.2));
  EXPECT_THAT(together, ThrowsMessage<InputError>(AllOf(HasSubstr("micro_batch = 1"), HasSubstr("micro_batch = 2"))));
  spec_.strategy.micro_batch = 1;
  spec_.training.seed = 5;
  spec_.data.path = "elsewhere";
  write_run("b", lines(40, 0.22));
  EXPECT_NO_THROW(together());
}

TEST_F(RecordedRuns, DamagedAndForeignFilesAreRefused) {
  const auto refused = [&](const std::vector<report::StepMetrics>& all, const char* words) {
    write_run("a", all);
    EXPECT_THAT([&] { read_recorded_run(folder("a")); },
                ThrowsMessage<InputError>(AllOf(HasSubstr("metrics.jsonl"), HasSubstr(words))));
  };
  refused({}, "no step is finished");
  auto all = lines(20, 0.2);
  all[7].step_seconds = -1;
  refused(all, "step 8: step_seconds = -1");
  all = lines(20, 0.2);
  all[7].step = 3;
  refused(all, "step 3 follows step 7");
  all = lines(20, 0.2);
  all[19].tflops_per_device *= 1.3;
  refused(all, "not of one run");
  all[19].tflops_per_device = 0;
  refused(all, "not of one run");
  all = lines(20, 0.2);
  all[4].pause_seconds = -2;
  refused(all, "a duration of -2 s");
  write_run("a", lines(20, 0.2));
  std::filesystem::remove(folder("a") + "/config.toml");
  EXPECT_THAT([&] { read_recorded_run(folder("a")); },
              ThrowsMessage<InputError>(HasSubstr("no config.toml beside it")));
  EXPECT_THAT([&] { read_recorded_run(folder("nowhere")); }, ThrowsMessage<InputError>(HasSubstr("nowhere")));
}

TEST_F(RecordedRuns, OtherDevicesNeedAMachine) {
  write_run("a", lines(40, 0.2));
  StepModel steps({read_recorded_run(folder("a"))});
  EXPECT_NEAR(steps.seconds(4, 16).middle, 0.202, 1e-3);
  EXPECT_THAT([&] { steps.seconds(8, 16); }, ThrowsMessage<InputError>(HasSubstr("add --machine")));
  // Half the batch: 4 micro-batches and 1 slot of the other stage, of 8 and 1.
  EXPECT_NEAR(steps.seconds(4, 8).middle / steps.seconds(4, 16).middle, 5.0 / 9, 1e-9);
}

}  // namespace
}  // namespace ridgeline::project
