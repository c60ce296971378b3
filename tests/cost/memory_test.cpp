#include "cost/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "cost/saved_tensors.h"
#include "cost/stages.h"
#include "spec/flat_layout.h"
#include "spec/parameters.h"

namespace ridgeline::cost {
namespace {

using spec::ModelSpec;
using spec::Precision;
using spec::Recompute;
using spec::Strategy;

ModelSpec model_of(int64_t layers) {
  ModelSpec model;
  model.layers = layers;
  model.hidden = 256;
  model.heads = 8;
  model.vocabulary = 1000;
  model.sequence = 64;
  return model;
}

Strategy strategy_of(int64_t tensor, int64_t pipeline, int64_t data) {
  Strategy strategy;
  strategy.tensor = tensor;
  strategy.pipeline = pipeline;
  strategy.data = data;
  strategy.micro_batch = 2;
  strategy.global_batch = 2 * data * 8;  // 8 micro-batches
  return strategy;
}

int64_t kept_bytes(const ModelSpec& model, const Strategy& strategy, int64_t unit, Precision compute,
                   int64_t rank = 0) {
  int64_t bytes = 0;
  for (const SavedTensor& tensor : saved_tensors(model, strategy, unit)) {
    if (is_kept(tensor, strategy.recompute)) bytes += local_bytes(tensor, strategy, compute, rank);
  }
  return bytes;
}

// Elements of compute precision in units of rows * hidden, and fp32 ones by themselves: norm statistics are 4 a row,
// log-sum-exp one a head.
TEST(SavedTensors, OfALayerAddUpAsByHand) {
  const ModelSpec model = model_of(2);
  const int64_t rows = 2 * model.sequence, stream = rows * model.hidden;
  const int64_t statistics = 4 * (4 * rows), log_sum_exp = 4 * rows * model.heads;
  Strategy strategy = strategy_of(1, 1, 1);
  // input 1, norm output 1, qkv 3, attention output 1, input 1, norm output 1, pre-activation 4, activation 4.
  EXPECT_EQ(kept_bytes(model, strategy, 1, Precision::bf16), 2 * 16 * stream + statistics + log_sum_exp);
  EXPECT_EQ(kept_bytes(model, strategy, 1, Precision::fp32), 4 * 16 * stream + statistics + log_sum_exp);
  strategy.recompute = Recompute::selective;  // without both norm outputs and the activation
  EXPECT_EQ(kept_bytes(model, strategy, 1, Precision::bf16), 2 * 10 * stream + statistics + log_sum_exp);
  strategy.recompute = Recompute::full;
  EXPECT_EQ(kept_bytes(model, strategy, 1, Precision::bf16), 2 * stream);
}

TEST(SavedTensors, OfATensorAxisDivideByTheirPlacement) {
  const ModelSpec model = model_of(2);
  const int64_t rows = 2 * model.sequence, stream = rows * model.hidden;
  const int64_t statistics = 4 * (4 * rows), log_sum_exp = 4 * rows * model.heads;
  Strategy strategy = strategy_of(4, 1, 1);
  // The residual stream and the norms' outputs are whole on every device; the rest is divided.
  EXPECT_EQ(kept_bytes(model, strategy, 1, Precision::bf16), 2 * (4 + 12 / 4) * stream + statistics + log_sum_exp / 4);
  strategy.sequence_parallel = true;
  EXPECT_EQ(kept_bytes(model, strategy, 1, Precision::bf16), (2 * 16 * stream + statistics + log_sum_exp) / 4);
}

// Uneven shards lose nothing.
TEST(SavedTensors, OfUnevenShardsAddUpToTheWhole) {
  ModelSpec model = model_of(2);
  model.ffn_hidden = 1001;
  const Strategy strategy = strategy_of(4, 1, 1);
  for (const SavedTensor& tensor : saved_tensors(model, strategy, 1)) {
    if (!tensor.placement.is_shard()) continue;
    int64_t sum = 0, elements = 1;
    for (int64_t rank = 0; rank < strategy.tensor; ++rank) sum += local_bytes(tensor, strategy, Precision::bf16, rank);
    for (const int64_t size : tensor.shape) elements *= size;
    EXPECT_EQ(sum, elements * element_bytes(tensor.element, Precision::bf16)) << tensor.name;
  }
}

TEST(SavedTensors, OfTheHeadDoNotHoldLogits) {
  const ModelSpec model = model_of(2);
  Strategy strategy = strategy_of(1, 1, 1);
  const int64_t rows = 2 * model.sequence;
  const int64_t expected = 2 * 2 * rows * model.hidden + 2 * 4 * rows;
  for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
    strategy.recompute = recompute;
    EXPECT_EQ(kept_bytes(model, strategy, spec::head_unit(model), Precision::bf16), expected);
  }
  EXPECT_TRUE(saved_tensors(model, strategy, spec::embedding_unit()).empty());
}

// Padding of the flat buffers is all that stands between the buffers and the parameters.
// Grouped heads, no norm mean, a gate: 8 query heads of 32 channels share 2 key and value heads.
TEST(SavedTensors, OfALlamaLikeLayerAddUpAsByHand) {
  ModelSpec model = model_of(2);
  model.kv_heads = 2;
  model.norm = spec::Norm::rms_norm;
  model.gated_mlp = true;
  model.ffn_hidden = 3 * model.hidden;
  const int64_t rows = 2 * model.sequence, stream = rows * model.hidden;
  const int64_t statistics = 2 * (4 * rows), log_sum_exp = 4 * rows * model.heads;
  Strategy strategy = strategy_of(1, 1, 1);
  // input 1, norm output 1, query 1, key 1/4, value 1/4, attention output 1, input 1, norm output 1, gate, up and
  // activation 3 each.
  EXPECT_EQ(kept_bytes(model, strategy, 1, Precision::bf16), 2 * 15 * stream + stream + statistics + log_sum_exp);
  strategy.recompute = Recompute::selective;
  EXPECT_EQ(kept_bytes(model, strategy, 1, Precision::bf16), 2 * 10 * stream + stream + statistics + log_sum_exp);
  model.qk_norm = true;  // queries and keys before their norm take their place, with its statistic for each head
  const int64_t head_statistics = 4 * rows * (8 + 2);
  EXPECT_EQ(kept_bytes(model, strategy, 1, Precision::bf16),
            2 * 10 * stream + stream + statistics + log_sum_exp + head_statistics);
  strategy.recompute = Recompute::none;  // both
  EXPECT_EQ(kept_bytes(model, strategy, 1, Precision::bf16),
            2 * 15 * stream + stream + 2 * stream + stream / 2 + statistics + log_sum_exp + head_statistics);
}

TEST(SavedTensors, OfExpertsAreThoseOfTheTokensRoutedToThem) {
  ModelSpec model = model_of(2);
  model.ffn_hidden = model.hidden;
  Strategy strategy = strategy_of(1, 1, 1);
  const int64_t dense = kept_bytes(model, strategy, 1, Precision::bf16);
  model.experts = 16;
  model.experts_per_token = 3;
  model.expert_ffn_hidden = model.hidden / 2;
  model.shared_ffn_hidden = model.hidden;
  const int64_t rows = 2 * model.sequence, stream = rows * model.hidden;
  // Beside the shared expert: three rows for each token in, two of half the width within, a probability each, and of each
  // pick its expert, its place among all, and its weight before and after it is sent.
  EXPECT_EQ(kept_bytes(model, strategy, 1, Precision::bf16),
            dense + 2 * (3 + 3) * stream + 4 * rows * 16 + rows * 3 * (8 + 8 + 4 + 4));
}

TEST(Memory, OfExpertsCountsAllOfThem) {
  ModelSpec model = model_of(4);
  model.experts = 8;
  model.gated_mlp = true;
  const Memory memory = device_memory(model, strategy_of(1, 1, 1), Precision::bf16, 0, 0);
  EXPECT_EQ(memory.weights, 2 * spec::parameter_count(model));
}

TEST(Memory, OfOneDeviceIsEighteenOrSixteenBytesAParameter) {
  const ModelSpec model = model_of(3);
  const Strategy strategy = strategy_of(1, 1, 1);
  const double parameters = static_cast<double>(spec::parameter_count(model));
  for (const auto& [compute, bytes] :
       {std::pair{Precision::bf16, 18.0}, {Precision::fp16, 18.0}, {Precision::fp32, 16.0}}) {
    const Memory memory = device_memory(model, strategy, compute, 0, 0);
    const double state = static_cast<double>(memory.weights + memory.gradients + memory.optimizer);
    EXPECT_GE(state, bytes * parameters);
    EXPECT_LE(state, bytes * parameters * 1.001);
  }
}

TEST(Memory, ZeroStageOneDividesTheOptimizerAlone) {
  const ModelSpec model = model_of(3);
  Strategy strategy = strategy_of(2, 1, 4);
  const Memory whole = device_memory(model, strategy, Precision::bf16, 0, 1);
  strategy.zero_stage = 1;
  const Memory divided = device_memory(model, strategy, Precision::bf16, 0, 1);
  EXPECT_EQ(divided.optimizer * 4, whole.optimizer);
  EXPECT_EQ(divided.weights, whole.weights);
  EXPECT_EQ(divided.gradients, whole.gradients);
  EXPECT_EQ(divided.activations, whole.activations);
}

TEST(Memory, HigherZeroStagesDivideGradientsAndWeightsToo) {
  const ModelSpec model = model_of(6);
  Strategy strategy = strategy_of(1, 1, 4);
  const auto at_stage = [&](int64_t zero, int64_t group) {
    strategy.zero_stage = zero;
    strategy.shard_group = group;
    return device_memory(model, strategy, Precision::bf16, 0, 0);
  };
  const auto ratio = [](int64_t one, int64_t other) { return static_cast<double>(one) / static_cast<double>(other); };
  const Memory whole = at_stage(0, 0), two = at_stage(2, 0), three = at_stage(3, 0), hybrid = at_stage(3, 2);
  EXPECT_NEAR(ratio(whole.weights, two.weights), 1, 1e-2);
  EXPECT_NEAR(ratio(whole.gradients, two.gradients), 4, 1e-2);
  EXPECT_NEAR(ratio(whole.optimizer, two.optimizer), 4, 1e-2);
  EXPECT_NEAR(ratio(whole.weights, three.weights), 4, 1e-2);
  EXPECT_EQ(two.gradients, three.gradients);
  EXPECT_NEAR(ratio(whole.weights, hybrid.weights), 2, 1e-2);
  EXPECT_EQ(whole.buffers, 0);
  EXPECT_EQ(three.buffers * 4, two.buffers * 6);  // fp32 gradients, and 16-bit values
  // Two layers, and the tied embedding with its own slot; nothing like the whole model.
  const int64_t layer = 12 * model.hidden * model.hidden, token = model.vocabulary * model.hidden;
  EXPECT_NEAR(ratio(two.buffers, 4 * (2 * layer + token)), 1, 0.02);
  strategy.data = 1;
  strategy.global_batch = 2;
  EXPECT_EQ(at_stage(3, 0).buffers, 0) << "one rank has nobody to share with";
}

// The embedding is on the first and, tied, on the last stage; nothing else is twice.
TEST(Memory, StagesTogetherHoldTheModelAndTheTiedEmbeddingTwice) {
  ModelSpec model = model_of(6);
  for (const bool tied : {true, false}) {
    model.tied = tied;
    const Strategy strategy = strategy_of(1, 3, 1);
    int64_t elements = 0;
    for (int64_t stage = 0; stage < 3; ++stage) {
      elements += device_memory(model, strategy, Precision::fp32, stage, 0).weights / 4;
    }
    const int64_t expected = spec::parameter_count(model) + (tied ? model.vocabulary * model.hidden : 0);
    EXPECT_GE(elements, expected);
    EXPECT_LE(static_cast<double>(elements), static_cast<double>(expected) * 1.001);
  }
}

TEST(Memory, ActivationsFollowTheSchedule) {
  const ModelSpec model = model_of(8);
  Strategy strategy = strategy_of(1, 4, 1);
  strategy.stage_layers = {2, 2, 2, 2};
  for (int64_t stage = 0; stage < 4; ++stage) {
    const int64_t one = micro_batch_activations(model, strategy, Precision::bf16, stage, 0);
    strategy.schedule = spec::ScheduleKind::one_f_one_b;
    EXPECT_EQ(device_memory(model, strategy, Precision::bf16, stage, 0).activations, (4 - stage) * one);
    strategy.schedule = spec::ScheduleKind::gpipe;
    EXPECT_EQ(device_memory(model, strategy, Precision::bf16, stage, 0).activations, 8 * one);
  }
  const int64_t layer = kept_bytes(model, strategy, 1, Precision::bf16);
  EXPECT_EQ(micro_batch_activations(model, strategy, Precision::bf16, 1, 0), 2 * layer);
  EXPECT_EQ(micro_batch_activations(model, strategy, Precision::bf16, 3, 0),
            2 * layer + kept_bytes(model, strategy, spec::head_unit(model), Precision::bf16));
}

// While a layer is in backward, what was dropped of it is there again: all of it with full recomputation.
TEST(Memory, RecomputationKeepsLessAndRebuildsOneLayer) {
  const ModelSpec model = model_of(8);
  Strategy strategy = strategy_of(1, 2, 1);
  const int64_t stream = 2 * model.sequence * model.hidden;
  EXPECT_EQ(recomputed_activations(model, strategy, Precision::bf16, 0), 0);
  const int64_t everything = kept_bytes(model, strategy, 1, Precision::bf16);
  const int64_t without = device_memory(model, strategy, Precision::bf16, 0, 0).activations;
  strategy.recompute = Recompute::selective;
  EXPECT_EQ(recomputed_activations(model, strategy, Precision::bf16, 0), 2 * 5 * stream);  // the MLP half
  const int64_t selective = device_memory(model, strategy, Precision::bf16, 0, 0).activations;
  strategy.recompute = Recompute::full;
  EXPECT_EQ(recomputed_activations(model, strategy, Precision::bf16, 0), everything - 2 * stream);
  const int64_t full = device_memory(model, strategy, Precision::bf16, 0, 0).activations;
  EXPECT_LT(full, selective);
  EXPECT_LT(selective, without);
}

TEST(Memory, TheFullestDeviceIsTheFullestOfAll) {
  ModelSpec model = model_of(8);
  model.vocabulary = 50001;
  for (const int64_t tensor : {1, 2, 4}) {
    for (const int64_t pipeline : {1, 2, 5, 8}) {
      const Strategy strategy = strategy_of(tensor, pipeline, 2);
      const FullestDevice found = fullest_device(model, strategy, Precision::bf16);
      int64_t most = 0;
      for (int64_t stage = 0; stage < pipeline; ++stage) {
        for (int64_t rank = 0; rank < tensor; ++rank) {
          most = std::max(most, device_memory(model, strategy, Precision::bf16, stage, rank).total());
        }
      }
      EXPECT_EQ(found.memory.total(), most);
    }
  }
}

}  // namespace
}  // namespace ridgeline::cost
