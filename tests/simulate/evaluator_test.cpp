// Predictions as a whole: parts that add up, memory that agrees with the exact account, laws that must hold in sign,
// and the recorded runs that the project ships.
#include "simulate/evaluator.h"

#include <gtest/gtest.h>

#include <cmath>

#include "cost/flops.h"
#include "cost/memory.h"
#include "cost/stages.h"
#include "simulate/validation.h"
#include "source_folder.h"

namespace ridgeline::simulate {
namespace {

constexpr const char* kFrontier = RIDGELINE_SOURCE_DIR "/machines/frontier.toml";

spec::Machine frontier() { return spec::load_machine(kFrontier); }

spec::Strategy strategy_of(const spec::ModelSpec& model, int64_t tensor, int64_t pipeline, int64_t devices,
                           int64_t global_batch, spec::Recompute recompute = spec::Recompute::full) {
  spec::Strategy strategy;
  strategy.tensor = tensor;
  strategy.pipeline = pipeline;
  strategy.global_batch = global_batch;
  strategy.recompute = recompute;
  strategy.zero_stage = 1;
  spec::derive_data(strategy, model, devices);
  return strategy;
}

TEST(Evaluator, PartsAddUpAndRatesFollowFromTheStep) {
  const spec::ModelSpec model = spec::model_preset("gpt-22b");
  Evaluator evaluator(model, frontier(), cost::recipe("ridgeline"), spec::Precision::bf16);
  const spec::Strategy strategy = strategy_of(model, 2, 4, 64, 512);
  const Prediction prediction = evaluator.predict(strategy);
  EXPECT_DOUBLE_EQ(prediction.time.total(), prediction.step_seconds);
  EXPECT_NEAR(prediction.tokens_per_second, 512 * 2048 / prediction.step_seconds, 1e-6);
  EXPECT_NEAR(prediction.hardware_tflops_per_device,
              cost::step_hardware_flops(model, strategy) / prediction.step_seconds / 64e12, 1e-9);
  EXPECT_NEAR(prediction.mfu, prediction.tflops_per_device / 191.5, 1e-12);
  EXPECT_GT(prediction.hfu, prediction.mfu);
}

TEST(Evaluator, MemoryIsThatOfTheExactAccount) {
  const spec::ModelSpec model = spec::model_preset("gpt-22b");
  Evaluator evaluator(model, frontier(), cost::recipe("ridgeline"), spec::Precision::bf16);
  std::vector<spec::Strategy> strategies;
  for (const auto recompute : {spec::Recompute::none, spec::Recompute::selective, spec::Recompute::full}) {
    for (const auto& [tensor, pipeline] : {std::pair{1, 1}, {4, 1}, {1, 4}, {4, 4}}) {
      for (const auto schedule : {spec::ScheduleKind::one_f_one_b, spec::ScheduleKind::gpipe}) {
        for (const bool sequence_parallel : {false, true}) {
          strategies.push_back(strategy_of(model, tensor, pipeline, 4 * tensor * pipeline, 64, recompute));
          strategies.back().schedule = schedule;
          strategies.back().sequence_parallel = sequence_parallel;
          for (const auto kind : {spec::ContextKind::ring, spec::ContextKind::all_to_all}) {
            spec::Strategy shared = strategies.back();
            shared.context = 4;
            shared.context_kind = kind;
            shared.data = 1;
            strategies.push_back(shared);
          }
        }
      }
    }
  }
  for (const spec::Strategy& strategy : strategies) {
    const std::vector<StageReport> stages = evaluator.stages(strategy);
    for (int64_t stage = 0; stage < strategy.pipeline; ++stage) {
      const cost::Memory exact = cost::device_memory(model, strategy, spec::Precision::bf16, stage, 0);
      const StageMemory& fast = stages[stage].memory;
      EXPECT_NEAR(fast.weights / exact.weights, 1.0, 1e-4);
      EXPECT_NEAR(fast.gradients / exact.gradients, 1.0, 1e-4);
      EXPECT_NEAR(fast.optimizer / exact.optimizer, 1.0, 1e-4);
      EXPECT_NEAR(fast.activations / exact.activations, 1.0, 1e-9)
          << strategy.tensor << ' ' << strategy.pipeline << ' ' << stage << ' ' << to_string(strategy.recompute) << ' '
          << to_string(strategy.schedule);
    }
  }
}

TEST(Evaluator, SharingSequencesDividesActivationsAndCostsMessages) {
  spec::ModelSpec model = spec::model_preset("gpt-22b");
  model.sequence = 65536;
  const auto predict = [&](int64_t context, spec::ContextKind kind, double network) {
    spec::Strategy strategy = strategy_of(model, 4, 1, 4, 4);
    strategy.context = context;
    strategy.context_kind = kind;
    spec::derive_data(strategy, model, 4 * context);
    spec::Machine machine = frontier();
    machine.stack.network_efficiency *= network;
    return Evaluator(model, machine, cost::recipe("ridgeline"), spec::Precision::bf16).predict(strategy);
  };
  const Prediction alone = predict(1, spec::ContextKind::ring, 1);
  EXPECT_EQ(alone.time.context_comm, 0);
  for (const auto kind : {spec::ContextKind::ring, spec::ContextKind::all_to_all}) {
    const Prediction shared = predict(4, kind, 1);
    EXPECT_DOUBLE_EQ(shared.time.total(), shared.step_seconds);
    EXPECT_GT(shared.time.context_comm, 0);
    EXPECT_NEAR(shared.memory.activations / alone.memory.activations, 0.25, 0.01);
    EXPECT_LT(shared.step_seconds, alone.step_seconds / 3);
    EXPECT_NEAR(shared.tflops_per_device * shared.step_seconds * 4, alone.tflops_per_device * alone.step_seconds, 1e-6);
  }
  // A ring hides its messages behind attention until these take longer.
  const double fast = predict(4, spec::ContextKind::ring, 1).time.context_comm;
  const double slow = predict(4, spec::ContextKind::ring, 0.01).time.context_comm;
  const double exchanged = predict(4, spec::ContextKind::all_to_all, 1).time.context_comm;
  EXPECT_LT(fast, exchanged);
  EXPECT_GT(slow, 10 * fast);
}

// Table 2 of Korthikanti et al. 2022 (arXiv 2205.05198), which holds for GPT with dropout; but for norms' statistics.
TEST(Evaluator, OtherProgramsKeepWhatIsPublished) {
  spec::ModelSpec model = spec::model_preset("gpt-22b");
  model.dropout = model.attention_dropout = 0.1;
  const double a = model.heads, s = model.sequence, h = model.hidden, t = 8;
  MemoryModel memory(model, frontier(), spec::Precision::bf16, cost::recipe("megatron"));
  const auto kept = [&](bool sequence_parallel, spec::Recompute recompute) {
    spec::Strategy strategy;
    strategy.tensor = 8;
    strategy.sequence_parallel = sequence_parallel;
    strategy.recompute = recompute;
    double sum = 0;
    for (const auto& [part, bytes] : memory.layer_tensors(strategy).kept) sum += bytes;
    return sum / (s * h);
  };
  EXPECT_NEAR(kept(false, spec::Recompute::none), 10 + 24 / t + 5 * a * s / (h * t), 0.01);
  EXPECT_NEAR(kept(true, spec::Recompute::none), 34 / t + 5 * a * s / (h * t), 0.01);
  EXPECT_NEAR(kept(true, spec::Recompute::selective), 34 / t, 0.01);
  EXPECT_DOUBLE_EQ(kept(false, spec::Recompute::full), 2);
}

// The same published account, of models that the paper does not have.
TEST(Evaluator, OtherProgramsRecipesCountTheModelsShape) {
  const auto kept = [](const spec::ModelSpec& model) {
    MemoryModel memory(model, frontier(), spec::Precision::bf16, cost::recipe("deepspeed"));
    double sum = 0;
    for (const auto& [part, bytes] : memory.layer_tensors(spec::Strategy{}).kept) sum += bytes;
    return sum / static_cast<double>(model.sequence * model.hidden);
  };
  spec::ModelSpec model = spec::model_preset("gpt-22b");
  const double plain = kept(model);
  EXPECT_NEAR(plain, 32, 0.1);  // no dropout, no masks
  model.gated_mlp = true;       // one more matrix of the MLP's width, before its activation
  EXPECT_NEAR(kept(model), plain + 2 * 4, 1e-6);
  model.kv_heads = model.heads / 4;  // three quarters of keys and values are gone
  EXPECT_NEAR(kept(model), plain + 2 * 4 - 2 * 1.5, 1e-6);
  model.experts = 8;
  model.experts_per_token = 2;  // twice the rows in the MLP, which are kept as they were routed too
  EXPECT_NEAR(kept(model), plain - 2 * 1.5 + 2 * 4 + 2 * 12 + 2 * 2, 0.02);
}

TEST(Evaluator, ZeroTwoKeepsAShareOfTheGradients) {
  const spec::ModelSpec model = spec::model_preset("gpt-1.3b");
  Evaluator evaluator(model, frontier(), cost::recipe("ridgeline"), spec::Precision::bf16);
  spec::Strategy strategy = strategy_of(model, 1, 1, 64, 512);
  std::vector<Prediction> predictions;
  for (const int64_t zero : {1, 2, 3}) {
    strategy.zero_stage = zero;
    predictions.push_back(evaluator.predict(strategy));
    EXPECT_DOUBLE_EQ(predictions.back().time.total(), predictions.back().step_seconds);
  }
  const StageMemory &one = predictions[0].memory, &two = predictions[1].memory, &three = predictions[2].memory;
  EXPECT_NEAR(two.gradients, one.gradients / 64, 1);
  EXPECT_EQ(two.optimizer, one.optimizer);
  EXPECT_EQ(two.weights, one.weights);
  EXPECT_NEAR(three.weights, two.weights / 64, 1);
  EXPECT_LT(three.total(), two.total());
  EXPECT_LT(two.total(), one.total());
  // What is sent is the same and more often, with less to hide it.
  EXPECT_GE(predictions[1].step_seconds, predictions[0].step_seconds);
  EXPECT_GE(predictions[2].step_seconds, predictions[1].step_seconds);
}

TEST(Evaluator, ShardedMemoryIsThatOfTheExactAccount) {
  for (const bool tied : {true, false}) {
    spec::ModelSpec model = spec::model_preset("gpt-22b");
    model.tied = tied;
    Evaluator of_model(model, frontier(), cost::recipe("ridgeline"), spec::Precision::bf16);
    for (const auto& [pipeline, zero, group] :
         {std::tuple{1, 2, 0}, {1, 3, 0}, {1, 3, 2}, {4, 2, 0}, {4, 3, 2}, {5, 3, 0}, {16, 3, 0}}) {
      spec::Strategy strategy = strategy_of(model, 2, pipeline, 8 * pipeline, 64);
      strategy.zero_stage = zero;
      strategy.shard_group = group;
      const std::vector<StageReport> stages = of_model.stages(strategy);
      const Prediction whole = of_model.predict(strategy);
      EXPECT_DOUBLE_EQ(whole.time.total(), whole.step_seconds);
      for (int64_t stage = 0; stage < pipeline; ++stage) {
        const cost::Memory exact = cost::device_memory(model, strategy, spec::Precision::bf16, stage, 0);
        const StageMemory& fast = stages[stage].memory;
        EXPECT_NEAR(fast.weights / exact.weights, 1.0, 1e-3);
        EXPECT_NEAR(fast.gradients / exact.gradients, 1.0, 1e-3);
        EXPECT_NEAR(fast.optimizer / exact.optimizer, 1.0, 1e-3);
        spec::Strategy unsharded = strategy;
        unsharded.zero_stage = 1;
        const double buffers = fast.buffers - of_model.stages(unsharded)[stage].memory.buffers;
        EXPECT_NEAR(buffers / exact.buffers, 1.0, 1e-3) << pipeline << ' ' << zero << ' ' << stage << ' ' << tied;
      }
    }
  }
}

TEST(Evaluator, FullestStageIsTheFullest) {
  const spec::ModelSpec model = spec::model_preset("gpt-175b");
  Evaluator evaluator(model, frontier(), cost::recipe("ridgeline"), spec::Precision::bf16);
  for (const int64_t pipeline : {1, 2, 8, 12, 16, 96}) {
    const spec::Strategy strategy = strategy_of(model, 8, pipeline, 16 * pipeline, 64);
    double most = 0;
    for (const StageReport& stage : evaluator.stages(strategy)) most = std::max(most, stage.memory.total());
    EXPECT_DOUBLE_EQ(evaluator.fullest(strategy).total(), most) << pipeline;
  }
}

TEST(Evaluator, PartsAddUpToTheLayer) {
  const spec::ModelSpec model = spec::model_preset("gpt-22b");
  spec::Machine machine = frontier();
  machine.stack.layer_host_us = 0;
  Evaluator evaluator(model, machine, cost::recipe("ridgeline"), spec::Precision::bf16);
  const spec::Strategy strategy = strategy_of(model, 1, 8, 16, 64);
  double forward = 0, backward = 0, saved = 0;
  for (const PartReport& part : evaluator.parts(strategy)) {
    if (part.name == "embedding" || part.name == "head") continue;
    forward += part.forward;
    backward += part.backward + part.recompute;
    saved += part.saved_bytes;
  }
  const StageReport stage = evaluator.stages(strategy)[3];
  EXPECT_NEAR(stage.times.forward(), stage.layers * forward, 1e-9);
  EXPECT_NEAR(stage.times.backward(), stage.layers * backward, 1e-9);
  EXPECT_EQ(saved, 2.0 * 2048 * 6144);  // full recomputation keeps a layer's input
}

TEST(Evaluator, ShardedParametersTradeTimeForMemory) {
  const spec::ModelSpec model = spec::model_preset("gpt-1.3b");
  Evaluator evaluator(model, frontier(), cost::recipe("ridgeline"), spec::Precision::bf16);
  spec::Strategy strategy = strategy_of(model, 1, 1, 64, 512);
  const Prediction whole = evaluator.predict(strategy);
  strategy.zero_stage = 3;
  const Prediction sharded = evaluator.predict(strategy);
  EXPECT_LT(sharded.memory.weights, whole.memory.weights / 60);
  EXPECT_LT(sharded.memory.total(), whole.memory.total() - 5e9);
  EXPECT_GT(sharded.step_seconds, whole.step_seconds);
  EXPECT_DOUBLE_EQ(sharded.time.total(), sharded.step_seconds);
}

// The study's observations, in sign (paper-facts.md, section 6).
class Observations : public testing::Test {
 protected:
  double rate(const spec::Strategy& strategy) { return evaluator_.predict(strategy).tflops_per_device; }
  spec::ModelSpec model_ = spec::model_preset("gpt-175b");
  Evaluator evaluator_{model_, frontier(), cost::recipe("deepspeed"), spec::Precision::fp16};
};

TEST_F(Observations, TensorAcrossNodesIsMuchSlower) {
  const double four = rate(strategy_of(model_, 4, 16, 128, 640)), eight = rate(strategy_of(model_, 8, 8, 128, 640));
  const double sixteen = rate(strategy_of(model_, 16, 4, 128, 640));
  EXPECT_GT(four, eight);
  EXPECT_GT(eight, 1.2 * sixteen);
}

TEST_F(Observations, MoreMicroBatchesRaiseTheRate) {
  EXPECT_GT(rate(strategy_of(model_, 4, 16, 128, 640)), rate(strategy_of(model_, 4, 16, 128, 64)));
}

TEST_F(Observations, MoreStagesAtTheSameBatchLowerIt) {
  EXPECT_GT(rate(strategy_of(model_, 4, 16, 384, 960)), rate(strategy_of(model_, 4, 48, 384, 960)));
}

TEST_F(Observations, WeakScalingKeepsTheRate) {
  EXPECT_NEAR(rate(strategy_of(model_, 4, 16, 1024, 640 * 16)) / rate(strategy_of(model_, 4, 16, 128, 640 * 2)), 1.0,
              0.04);
}

TEST(Validation, ShippedRunsAreMet) {
  setenv("RIDGELINE_MACHINES", RIDGELINE_SOURCE_DIR "/machines", 1);
  const auto runs = validate_runs(measured_runs(read_table(RIDGELINE_SOURCE_DIR "/validation/throughput.csv")), "");
  int64_t study = 0, lumi = 0;
  for (const ValidatedRun& run : runs) {
    ASSERT_TRUE(run.prediction) << run.run.label << ": " << run.run.why_not;
    if (run.run.source.starts_with("Dash")) {
      ++study;
      EXPECT_LT(std::abs(run.error()), 0.08) << run.run.label;
    }
    if (run.run.source.starts_with("LUMI")) {
      ++lumi;
      EXPECT_LT(std::abs(run.error()), 0.05) << run.run.label;
    }
    if (run.run.source.starts_with("Korthikanti")) {
      EXPECT_LT(std::abs(run.error()), 0.04) << run.run.label;
    }
  }
  EXPECT_EQ(study, 3);
  EXPECT_GE(lumi, 5);
}

}  // namespace
}  // namespace ridgeline::simulate
