// Kernels count the same FLOPs and messages as the closed account of cost/flops.h and the published formulas.
#include "cost/kernels.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "cost/flops.h"
#include "spec/parameters.h"

namespace ridgeline::cost {
namespace {

double flops(const std::vector<Kernel>& kernels) {
  double total = 0;
  for (const Kernel& kernel : kernels) {
    total += kernel.flops + 2.0 * static_cast<double>(kernel.batch) * static_cast<double>(kernel.m) *
                                static_cast<double>(kernel.n) * static_cast<double>(kernel.k);
  }
  return total;
}

double message_bytes(const Work& work, MessageKind kind) {
  double total = 0;
  for (const Message& message : work.messages) total += message.kind == kind ? message.bytes : 0;
  return total;
}

Recipe unfused() {
  Recipe recipe = cost::recipe("megatron");
  return recipe;
}

class Kernels : public testing::Test {
 protected:
  spec::Strategy strategy(int64_t tensor, spec::Recompute recompute, bool sequence_parallel = false) const {
    spec::Strategy strategy;
    strategy.tensor = tensor;
    strategy.micro_batch = 2;
    strategy.recompute = recompute;
    strategy.sequence_parallel = sequence_parallel;
    return strategy;
  }
  UnitWork layer(const spec::Strategy& strategy, const Recipe& recipe) const {
    return unit_kernels(model_, strategy, local_shares(model_, strategy.tensor), spec::Precision::bf16, recipe,
                        spec::layer_unit(0));
  }
  spec::ModelSpec model_ = spec::model_preset("gpt-22b");
};

TEST_F(Kernels, FlopsAreThoseOfTheAccount) {
  for (const char* preset : {"gpt-22b", "llama3-8b"}) {
    model_ = spec::model_preset(preset);
    for (const int64_t tensor : {1, 4}) {
      const UnitWork work = layer(strategy(tensor, spec::Recompute::full), unfused());
      const PassFlops account = unit_flops(model_, spec::Recompute::full, spec::layer_unit(0));
      const double share = 2.0 / static_cast<double>(tensor);  // two samples
      EXPECT_NEAR(flops(work.forward.kernels) / (account.forward * share), 1.0, 1e-12) << preset;
      EXPECT_NEAR(flops(work.backward.kernels) / (account.backward * share), 1.0, 1e-12) << preset;
      EXPECT_NEAR(flops(work.recompute.kernels) / (account.recompute * share), 1.0, 1e-12) << preset;
    }
  }
}

TEST_F(Kernels, RanksThatShareASequenceShareItsWork) {
  model_ = spec::model_preset("llama3-8b");  // 32 heads of 128, 8 of keys
  const UnitWork whole = layer(strategy(2, spec::Recompute::full), unfused());
  for (const auto kind : {spec::ContextKind::ring, spec::ContextKind::all_to_all}) {
    spec::Strategy shared = strategy(2, spec::Recompute::full);
    shared.context = 8;
    shared.context_kind = kind;
    const UnitWork part = layer(shared, unfused());
    EXPECT_NEAR(8 * flops(part.forward.kernels) / flops(whole.forward.kernels), 1.0, 1e-12);
    EXPECT_NEAR(8 * flops(part.backward.kernels) / flops(whole.backward.kernels), 1.0, 1e-12);
    EXPECT_EQ(part.recompute.context.size(), part.forward.context.size());
    double forward = 0, backward = 0;
    for (const Message& message : part.forward.context) forward += message.bytes;
    for (const Message& message : part.backward.context) backward += message.bytes;
    const double rows = 2.0 * static_cast<double>(model_.sequence) / 8;
    if (kind == spec::ContextKind::ring) {  // keys and values of 4 heads, 7 times; their gradients in fp32
      EXPECT_DOUBLE_EQ(forward, 7 * rows * 2 * 4 * 128 * 2);
      EXPECT_DOUBLE_EQ(backward, 7 * rows * 2 * 4 * 128 * (2 + 4));
    } else {  // 16 heads there and back, and 4 of keys and of values, each twice
      EXPECT_DOUBLE_EQ(forward, rows * (2 * 16 + 2 * 8) * 128 * 2);
      EXPECT_DOUBLE_EQ(backward, forward);
    }
  }
}

TEST_F(Kernels, FusedAttentionRepeatsItsScores) {
  const UnitWork fused = layer(strategy(1, spec::Recompute::none), Recipe{});
  const UnitWork plain = layer(strategy(1, spec::Recompute::none), unfused());
  EXPECT_DOUBLE_EQ(flops(fused.forward.kernels), flops(plain.forward.kernels));
  const double product = 2.0 * 2 * 2048 * 2048 * 6144;
  EXPECT_NEAR(flops(fused.backward.kernels) - flops(plain.backward.kernels), product, product * 1e-9);
}

TEST_F(Kernels, SelectiveRepeatsWhatTheProgramRepeats) {
  EXPECT_EQ(flops(layer(strategy(2, spec::Recompute::selective), Recipe{}).recompute.kernels), 0);
  const double scores_and_context = 2 * 2.0 * 2 * 2048 * 2048 * 6144 / 2;
  EXPECT_NEAR(flops(layer(strategy(2, spec::Recompute::selective), unfused()).recompute.kernels), scores_and_context,
              scores_and_context * 1e-9);
}

// Four all-reduces of the stream a layer, two more with full recomputation; with sequence parallelism the same bytes as
// all-gathers and reduce-scatters, and one all-gather more for each branch's weight gradients.
TEST_F(Kernels, MessagesOnTheTensorAxis) {
  const double stream = 2.0 * 2048 * 6144 * 2;
  const UnitWork plain = layer(strategy(4, spec::Recompute::full), Recipe{});
  EXPECT_EQ(message_bytes(plain.forward, MessageKind::all_reduce), 2 * stream);
  EXPECT_EQ(message_bytes(plain.backward, MessageKind::all_reduce), 2 * stream);
  EXPECT_EQ(message_bytes(plain.recompute, MessageKind::all_reduce), 2 * stream);
  const UnitWork cut = layer(strategy(4, spec::Recompute::none, true), Recipe{});
  EXPECT_EQ(message_bytes(cut.forward, MessageKind::all_gather), 2 * stream);
  EXPECT_EQ(message_bytes(cut.forward, MessageKind::reduce_scatter), 2 * stream);
  EXPECT_EQ(message_bytes(cut.backward, MessageKind::all_gather), 4 * stream);
  EXPECT_EQ(message_bytes(cut.backward, MessageKind::reduce_scatter), 2 * stream);
  EXPECT_TRUE(layer(strategy(1, spec::Recompute::full), Recipe{}).forward.messages.empty());
}

TEST(Recipe, StagesAsTheProgramFillsThem) {
  spec::ModelSpec model = spec::model_preset("gpt-22b");
  model.layers = 70;
  spec::Strategy strategy;
  strategy.pipeline = 8;
  EXPECT_EQ(with_stages(strategy, model, recipe("deepspeed")).stage_layers,
            (std::vector<int64_t>{9, 9, 9, 9, 9, 9, 9, 7}));
  strategy.pipeline = 48;  // never an empty stage
  const spec::Strategy filled = with_stages(strategy, model, recipe("deepspeed"));
  int64_t sum = 0;
  for (const int64_t layers : filled.stage_layers) {
    EXPECT_GE(layers, 1);
    sum += layers;
  }
  EXPECT_EQ(sum, 70);
  EXPECT_TRUE(with_stages(strategy, model, recipe("ridgeline")).stage_layers.empty());
  EXPECT_THROW(recipe("megatorn"), InputError);
}

TEST_F(Kernels, EightBitsChangeProductsOfTheLayersWeightsAlone) {
  Recipe eight = recipe("megatron");  // its attention is products too
  eight.fp8_products = true;
  const UnitWork plain = layer(strategy(1, spec::Recompute::none), recipe("megatron"));
  const UnitWork work = layer(strategy(1, spec::Recompute::none), eight);
  int64_t in_fp8 = 0;
  for (const Kernel& kernel : work.forward.kernels) in_fp8 += kernel.in_fp8;
  EXPECT_EQ(in_fp8, 4);  // query, key and value; output; both of the MLP
  EXPECT_EQ(work.forward.kernels.size(), plain.forward.kernels.size() + 4);  // a cast before each
  EXPECT_EQ(work.backward.kernels.size(), plain.backward.kernels.size() + 4);
  EXPECT_DOUBLE_EQ(flops(work.forward.kernels), flops(plain.forward.kernels));
  const UnitWork head = unit_kernels(model_, strategy(1, spec::Recompute::none), local_shares(model_, 1),
                                     spec::Precision::bf16, eight, spec::head_unit(model_));
  for (const Kernel& kernel : head.forward.kernels) EXPECT_FALSE(kernel.in_fp8);
}

}  // namespace
}  // namespace ridgeline::cost
