// The event simulation against the closed forms, against schedule/replay, and its trace.
#include "simulate/timeline.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "schedule/replay.h"
#include "simulate/evaluator.h"
#include "source_folder.h"

namespace ridgeline::simulate {
namespace {

using spec::ScheduleKind;

TEST(Timeline, AgreesWithReplayOnEqualStages) {
  for (const ScheduleKind kind : {ScheduleKind::one_f_one_b, ScheduleKind::gpipe}) {
    for (const int64_t stages : {1, 2, 3, 8}) {
      for (const int64_t micro_batches : {1, 2, 7, 24}) {
        const schedule::Schedule schedule = schedule::make_schedule(kind, stages, micro_batches);
        schedule::Durations durations{.forward = 2.0, .backward_input = 1.5, .backward_weight = 2.5, .message = 0.25};
        const double expected = schedule::replay(schedule, durations).makespan;
        const std::vector<ChunkDurations> stage(stages, ChunkDurations{2.0, 4.0, 2.5});
        EXPECT_DOUBLE_EQ(play(schedule, stage, 0.25, false).seconds, expected)
            << to_string(kind) << ' ' << stages << ' ' << micro_batches;
      }
    }
  }
}

TEST(Timeline, SlowStageSetsThePace) {
  const schedule::Schedule schedule = schedule::make_schedule(ScheduleKind::one_f_one_b, 4, 100);
  std::vector<ChunkDurations> stages(4, ChunkDurations{1.0, 2.0, 0.0});
  stages[2] = {2.0, 4.0, 0.0};
  // At least what the slowest does and what stands before and after it; at most the sum of all stages once, and 99 more
  // of the slowest: forwards that run ahead may fill some of its waiting.
  const double seconds = play(schedule, stages, 0.0, false).seconds;
  EXPECT_GE(seconds, 100 * 6.0 + 2 * 3.0);
  EXPECT_LE(seconds, 15.0 + 99 * 6.0);
}

TEST(Timeline, RefusesAScheduleThatDoesNotEnd) {
  schedule::Schedule schedule = schedule::make_schedule(ScheduleKind::one_f_one_b, 2, 2);
  std::erase_if(schedule.actions[0],
                [](const schedule::Action& action) { return action.kind == schedule::ActionKind::send_activation; });
  EXPECT_THROW(play(schedule, std::vector<ChunkDurations>(2), 0.0, false), InternalError);
}

TEST(Timeline, TraceIsJsonWithASpanForEachCompute) {
  const schedule::Schedule schedule = schedule::make_schedule(ScheduleKind::one_f_one_b, 3, 5);
  const Timeline timeline = play(schedule, std::vector<ChunkDurations>(3, ChunkDurations{1e-3, 2e-3, 0}), 1e-4, true);
  const auto trace = nlohmann::json::parse(chrome_trace(timeline))["traceEvents"];
  ASSERT_EQ(trace.size(), 3u * 4 + 3 * 5 * 2);  // a process and a thread have a name and a place each
  double last = 0;
  for (const auto& event : trace) {
    if (event["ph"] != "X") continue;
    EXPECT_GE(event["ts"].get<double>(), 0.0);
    last = std::max(last, event["ts"].get<double>() + event["dur"].get<double>());
  }
  EXPECT_NEAR(last, timeline.seconds * 1e6, 1e-2);
}

// The pipeline's part of the closed form.
double pipeline_seconds(const Prediction& prediction) {
  return prediction.time.compute + prediction.time.tensor_comm + prediction.time.pipeline_comm + prediction.time.bubble;
}

class ClosedForm : public testing::Test {
 protected:
  ClosedForm() { machine_.stack.overlap_slowdown = 0; }  // what it adds lies outside the pipeline

  void expect_agreement(const spec::Strategy& strategy, double tolerance) {
    Evaluator evaluator(model_, machine_, cost::recipe("ridgeline"), spec::Precision::bf16);
    const double closed = pipeline_seconds(evaluator.predict(strategy));
    const double events = evaluator.play(strategy).seconds;
    EXPECT_NEAR(closed / events, 1.0, tolerance)
        << strategy.pipeline << " stages, " << strategy.micro_batches() << " micro-batches";
  }

  spec::Strategy strategy_of(ScheduleKind kind, int64_t pipeline, int64_t micro_batches) const {
    spec::Strategy strategy;
    strategy.tensor = 4;
    strategy.pipeline = pipeline;
    strategy.data = 2;
    strategy.schedule = kind;
    strategy.global_batch = 2 * micro_batches;
    strategy.recompute = spec::Recompute::full;
    return strategy;
  }

  spec::Machine machine_ = spec::load_machine(RIDGELINE_SOURCE_DIR "/machines/frontier.toml");
  spec::ModelSpec model_ = spec::model_preset("gpt-175b");
};

TEST_F(ClosedForm, NearlyEqualStages) {
  for (const ScheduleKind kind : {ScheduleKind::one_f_one_b, ScheduleKind::gpipe}) {
    for (const int64_t pipeline : {1, 2, 8, 16}) {
      for (const int64_t micro_batches : {1, 4, 16, 64})
        expect_agreement(strategy_of(kind, pipeline, micro_batches), 0.02);
    }
  }
}

TEST_F(ClosedForm, SplitBackward) {
  for (const int64_t pipeline : {2, 4, 8, 16}) {
    for (const int64_t groups : {1, 2, 8}) {
      expect_agreement(strategy_of(ScheduleKind::zero_bubble, pipeline, groups * pipeline), 0.03);
      spec::Strategy vee = strategy_of(ScheduleKind::zero_bubble_v, pipeline, groups * pipeline);
      vee.virtual_pipeline = 2;
      expect_agreement(vee, 0.07);  // carried over from a pipeline of four stages
      vee.recompute = spec::Recompute::none;
      expect_agreement(vee, 0.07);
    }
  }
}

TEST_F(ClosedForm, UnequalStages) {
  spec::Strategy uneven = strategy_of(ScheduleKind::one_f_one_b, 4, 64);
  uneven.stage_layers = {20, 20, 36, 20};
  expect_agreement(uneven, 0.02);
  uneven.schedule = ScheduleKind::gpipe;
  expect_agreement(uneven, 0.02);
}

TEST_F(ClosedForm, Interleaved) {
  for (const int64_t pipeline : {2, 4, 8}) {
    for (const int64_t chunks : {2, 3, 6}) {
      for (const int64_t groups : {1, 2, 8}) {
        spec::Strategy interleaved = strategy_of(ScheduleKind::one_f_one_b, pipeline, groups * pipeline);
        interleaved.virtual_pipeline = chunks;
        expect_agreement(interleaved, 0.03);
      }
    }
  }
}

TEST(Timeline, InterleavedBubbleIsShorterByTheChunks) {
  for (const int64_t chunks : {1, 2, 4}) {
    const int64_t stages = 4, micro_batches = 12;
    const schedule::Schedule schedule = schedule::make_interleaved_schedule(stages, chunks, micro_batches);
    const std::vector<ChunkDurations> durations(stages * chunks, ChunkDurations{1.0 / chunks, 2.0 / chunks, 0});
    EXPECT_NEAR(play(schedule, durations, 0, false).seconds, 3.0 * micro_batches + 3.0 * (stages - 1) / chunks, 1e-9)
        << chunks;
  }
}

}  // namespace
}  // namespace ridgeline::simulate
