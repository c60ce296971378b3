// The executor runs a schedule in the order and with the dependencies that theory takes for granted. Time is simulated:
// a stage adds what a pass takes to its clock, which starts from the later of its own and the one that came with its
// input; tensors between stages carry clocks. So what is measured is what real threads and messages did.
#include "train/pipeline_executor.h"

#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "mesh/ranks.h"
#include "schedule/check.h"
#include "schedule/replay.h"

namespace ridgeline::train {
namespace {

using spec::ScheduleKind;

struct Clock {
  double now = 0;
  double busy = 0;
  void work(double begin, double duration) {
    now = std::max(now, begin) + duration;
    busy += duration;
  }
};

// One global stage without layers.
class TimedStage : public nn::Stage {
 public:
  TimedStage(const nn::Context& context, int64_t global_stage, const schedule::Durations& durations, Clock& clock)
      : nn::Stage(context, {global_stage, global_stage + 1}), durations_(durations), clock_(clock) {}

  at::Tensor forward(const at::Tensor& input, nn::InFlight& flight) const override {
    flight.saved.resize(1);
    EXPECT_EQ(input.defined(), !is_first());
    return pass(input, durations_.forward, is_last());
  }
  at::Tensor forward_only(const at::Tensor& input, const nn::MicroBatch&) const override {
    return pass(input, durations_.forward, is_last());
  }
  at::Tensor backward(const at::Tensor& gradient, nn::InFlight& flight, const UnitFinished& finished) const override {
    EXPECT_EQ(gradient.defined(), !is_last());
    at::Tensor result = pass(gradient, durations_.backward_input + durations_.backward_weight, false);
    finished(units().begin);
    return result;
  }
  at::Tensor backward_input(const at::Tensor& gradient, nn::InFlight& flight) const override {
    EXPECT_EQ(gradient.defined(), !is_last());
    return pass(gradient, durations_.backward_input, false);
  }
  void backward_weight(nn::InFlight& flight, const UnitFinished& finished) const override {
    clock_.work(0, durations_.backward_weight);
    finished(units().begin);
  }

 private:
  at::Tensor pass(const at::Tensor& input, double duration, bool is_loss) const {
    clock_.work(input.defined() ? input.item<double>() : 0.0, duration);
    return is_loss ? at::ones({1}, at::kDouble) : at::full({1, 1}, clock_.now, at::kDouble);
  }

  schedule::Durations durations_;
  Clock& clock_;
};

struct Executed {
  double makespan = 0;
  double idle_share = 0;
  double loss = 0;
  std::vector<std::vector<int64_t>> finished;  // [stage] units in the order in which they were told
};

Executed execute(const schedule::Schedule& schedule, const spec::Strategy& strategy,
                 const schedule::Durations& durations) {
  const int64_t stages = schedule.stages;
  std::vector<Clock> clocks(stages);
  Executed result;
  result.finished.resize(stages);
  mesh::run_ranks(stages, [&](int64_t rank, std::shared_ptr<mesh::Store> store) {
    const c10::InferenceMode no_autograd;
    const mesh::Mesh mesh(mesh::MeshShape::of(strategy), rank, store, platform::Device::select("cpu"),
                          mesh::rank_options());
    spec::ModelSpec model;
    model.layers = schedule.global_stages() - 2;  // a unit for each global stage
    model.hidden = 1;
    model.sequence = 1;
    const nn::Context context{
        model, strategy, spec::residual_placement(strategy), &mesh.group(mesh::Axis::tensor), 1, at::kDouble, at::kCPU};
    std::vector<std::unique_ptr<TimedStage>> owned;
    std::vector<const nn::Stage*> chunks;
    for (const int64_t global_stage : schedule.global_stage[rank]) {
      owned.push_back(std::make_unique<TimedStage>(context, global_stage, durations, clocks[rank]));
      chunks.push_back(owned.back().get());
    }
    PipelineExecutor executor(std::move(chunks), mesh, at::kDouble, at::kCPU);
    const auto batch_of = [](int64_t) {
      nn::MicroBatch batch;
      batch.size = batch.sequence = 1;
      return batch;
    };
    const at::Tensor loss =
        executor.run(schedule, batch_of, [&](int64_t unit) { result.finished[rank].push_back(unit); });
    if (rank == strategy.head_stage()) result.loss = loss.item<double>();
    mesh.world().barrier().wait();
  });
  double busy = 0;
  for (const Clock& clock : clocks) {
    result.makespan = std::max(result.makespan, clock.now);
    busy += clock.busy;
  }
  result.idle_share = 1 - busy / (result.makespan * static_cast<double>(stages));
  return result;
}

spec::Strategy strategy_of(ScheduleKind kind, int64_t stages, int64_t chunks, int64_t micro_batches) {
  spec::Strategy strategy;
  strategy.schedule = kind;
  strategy.pipeline = stages;
  strategy.virtual_pipeline = chunks;
  strategy.data = 1;
  strategy.global_batch = micro_batches;
  return strategy;
}

struct Case {
  const char* name;
  ScheduleKind kind;
  int64_t chunks;
};

class ExecutedSchedule : public testing::TestWithParam<Case> {};

// What the executor did is what replay says, to the last digit: the same waits, whatever threads did meanwhile.
TEST_P(ExecutedSchedule, TakesTheTimeOfItsReplay) {
  for (const int64_t stages : {2, 3, 4}) {
    for (const int64_t groups : {1, 3}) {
      const spec::Strategy strategy = strategy_of(GetParam().kind, stages, GetParam().chunks, groups * stages);
      const schedule::Schedule schedule = schedule::make_schedule(strategy);
      const schedule::Durations durations{3, 4, 2, 0};
      const Executed executed = execute(schedule, strategy, durations);
      EXPECT_DOUBLE_EQ(executed.makespan, schedule::replay(schedule, durations).makespan) << stages << ' ' << groups;
      EXPECT_DOUBLE_EQ(executed.loss, static_cast<double>(groups * stages));
      for (int64_t stage = 0; stage < stages; ++stage) {
        std::vector<int64_t> units = schedule.global_stage[stage];
        std::sort(units.rbegin(), units.rend());
        EXPECT_EQ(executed.finished[stage], units) << "each unit once, the last of the model first";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, ExecutedSchedule,
                         testing::Values(Case{"gpipe", ScheduleKind::gpipe, 1},
                                         Case{"one_f_one_b", ScheduleKind::one_f_one_b, 1},
                                         Case{"interleaved_2", ScheduleKind::one_f_one_b, 2},
                                         Case{"interleaved_3", ScheduleKind::one_f_one_b, 3},
                                         Case{"zero_bubble", ScheduleKind::zero_bubble, 1},
                                         Case{"zero_bubble_v", ScheduleKind::zero_bubble_v, 2}),
                         [](const auto& info) { return info.param.name; });

// Stages that take equal time; forward, and both halves of backward, alike. A chunk takes its share of a stage.
TEST(ExecutedBubble, IsThatOfTheory) {
  const double p = 4, m = 8;
  const auto run = [&](ScheduleKind kind, int64_t chunks) {
    const spec::Strategy strategy = strategy_of(kind, 4, chunks, 8);
    const double pass = 12.0 / static_cast<double>(chunks);
    return execute(schedule::make_schedule(strategy), strategy, {pass, pass, pass, 0});
  };
  const Executed plain = run(ScheduleKind::one_f_one_b, 1), interleaved = run(ScheduleKind::one_f_one_b, 2),
                 zero_bubble = run(ScheduleKind::zero_bubble, 1), vee = run(ScheduleKind::zero_bubble_v, 2);
  EXPECT_NEAR(plain.idle_share, (p - 1) / (m + p - 1), 1e-12);
  EXPECT_NEAR(interleaved.idle_share, (p - 1) / (2 * m + p - 1), 1e-12);
  EXPECT_NEAR(zero_bubble.idle_share, (p - 1) / (3 * m + p - 1), 1e-12);
  EXPECT_NEAR(vee.idle_share, (p - 1) / (6 * m + p - 1), 1e-12);
  EXPECT_NEAR(plain.makespan - zero_bubble.makespan, 2 * (p - 1) * 12, 1e-9) << "what splitting the backward gains";
  EXPECT_NEAR(plain.makespan - vee.makespan, 2.5 * (p - 1) * 12, 1e-9);
}

// Evaluation, with a number of micro-batches that divides by nothing.
TEST(ExecutedEvaluation, GoesThroughAllChunks) {
  for (const ScheduleKind kind : {ScheduleKind::one_f_one_b, ScheduleKind::zero_bubble_v}) {
    const spec::Strategy strategy = strategy_of(kind, 3, 2, 3);
    const schedule::Schedule schedule = schedule::make_forward_schedule(strategy, 7);
    const Executed executed = execute(schedule, strategy, {1, 0, 0, 0});
    EXPECT_DOUBLE_EQ(executed.makespan, schedule::replay(schedule, {1, 0, 0, 0}).makespan);
    EXPECT_DOUBLE_EQ(executed.loss, 7.0);
  }
}

}  // namespace
}  // namespace ridgeline::train
