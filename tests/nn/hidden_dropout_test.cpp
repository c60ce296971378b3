// Dropout on the residual stream is the mask of core/random.h's definition, on every rank's share of the rows.
#include "nn/hidden_dropout.h"

#include <gtest/gtest.h>

#include "core/random.h"
#include "mesh/mesh.h"
#include "nn/small_model.h"

namespace ridgeline::nn {
namespace {

constexpr int64_t kSite = 8;

// Decisions one by one for `rows` of the micro-batch, as factors.
at::Tensor explicit_mask(const Context& context, const MicroBatch& batch, const spec::Range& rows) {
  const DropoutRate rate(context.model.dropout);
  const uint64_t key = dropout_key(context.seed, batch.step, kSite);
  at::Tensor mask = at::zeros({rows.size(), context.model.hidden}, at::kFloat);
  auto factors = mask.accessor<float, 2>();
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const int64_t sample = batch.samples.data_ptr<int64_t>()[row / batch.sequence];
    for (int64_t channel = 0; channel < context.model.hidden; ++channel) {
      const bool keeps = dropout_keeps(rate, key, sample, row % batch.sequence, channel);
      factors[row - rows.begin][channel] = keeps ? rate.scale : 0.0F;
    }
  }
  return mask;
}

class HiddenDropoutTest : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override {
    model_.dropout = 0.3;
    strategy_.tensor = GetParam();
    strategy_.sequence_parallel = GetParam() > 1;
    batch_ = random_batch(model_, 3, /*number=*/4);
  }
  // On each rank of a tensor axis that shares the rows out; nothing is sent.
  void on_each_rank(const std::function<void(const Context& context, const spec::Range& rows)>& function) {
    for (int64_t rank = 0; rank < GetParam(); ++rank) {
      const mesh::Mesh mesh =
          mesh::Mesh::dry({.tensor = GetParam()}, rank, platform::Device::select("cpu"));
      const Context context{model_, strategy_,  spec::residual_placement(strategy_), &mesh.group(mesh::Axis::tensor),
                            77,     at::kFloat, at::kCPU};
      const spec::Range rows = context.local_rows(batch_.tokens_total());
      EXPECT_EQ(rows, spec::split_range(36, GetParam(), rank));
      function(context, rows);
    }
  }
  at::Tensor random_rows(const spec::Range& rows) const { return at::randn({rows.size(), model_.hidden}); }

  spec::ModelSpec model_ = small_model();
  spec::Strategy strategy_;
  MicroBatch batch_;
};

TEST_P(HiddenDropoutTest, IsTheMaskOfTheDefinition) {
  on_each_rank([&](const Context& context, const spec::Range& rows) {
    const at::Tensor mask = explicit_mask(context, batch_, rows), input = random_rows(rows);
    EXPECT_TRUE(at::equal(hidden_dropout(input, context, batch_, kSite), input * mask));
    EXPECT_TRUE(at::equal(hidden_dropout_backward(input, context, batch_, kSite), input * mask));
  });
}

TEST_P(HiddenDropoutTest, IsFusedWithBiasAndResidual) {
  on_each_rank([&](const Context& context, const spec::Range& rows) {
    const at::Tensor branch = random_rows(rows), residual = random_rows(rows), bias = at::randn({model_.hidden});
    const at::Tensor expected = residual + (branch + bias) * explicit_mask(context, batch_, rows);
    const at::Tensor actual = add_bias_dropout_residual(branch.clone(), bias, residual, context, batch_, kSite);
    EXPECT_LT(relative_error(actual, expected), 1e-6);
  });
}

TEST_P(HiddenDropoutTest, DropsNothingInEvaluation) {
  batch_.training = false;
  on_each_rank([&](const Context& context, const spec::Range& rows) {
    const at::Tensor input = random_rows(rows);
    EXPECT_TRUE(hidden_dropout(input, context, batch_, kSite).is_same(input));
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, HiddenDropoutTest, testing::Values(1, 2, 4), testing::PrintToStringParamName());

}  // namespace
}  // namespace ridgeline::nn
