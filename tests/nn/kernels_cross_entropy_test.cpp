#include <vector>

#include "nn/kernel_reference.h"
#include "nn/kernels/cross_entropy.h"

namespace ridgeline::nn {
namespace {

using CrossEntropyTest = KernelTest;
INSTANTIATE_TEST_SUITE_P(Kernels, CrossEntropyTest, every_target_and_format(), target_and_format);

struct Reference {
  at::Tensor losses, gradient;  // double
};

// Through autograd in double.
Reference reference(const at::Tensor& logits, const at::Tensor& targets, double scale) {
  const at::Tensor x = logits.to(at::kDouble).detach().requires_grad_(true);
  const at::Tensor losses = at::cross_entropy_loss(x, targets, {}, at::Reduction::None, kIgnoredTarget);
  losses.sum().mul(scale).backward();
  return {losses.detach(), x.grad()};
}

at::Tensor some_targets(int64_t rows, int64_t vocabulary) {
  const at::Tensor targets = at::randint(0, vocabulary, {rows}, at::kLong);
  targets[0] = 0;
  targets[rows - 1] = vocabulary - 1;
  targets[rows / 2] = kIgnoredTarget;
  return targets;
}

TEST_P(CrossEntropyTest, OneRankAgreesWithDoublePrecision) {
  for (const int64_t vocabulary : {2, 15, 64, 257, 1003}) {
    const at::Tensor logits = normal({11, vocabulary}, 4.0);
    const at::Tensor targets = some_targets(11, vocabulary);
    const Reference expected = reference(logits, targets, 0.125);
    const at::Tensor losses = loss_and_gradient(logits, targets, 0.125);
    EXPECT_EQ(losses.scalar_type(), at::kFloat);
    EXPECT_LT(difference(losses, expected.losses), 2e-6) << vocabulary;
    EXPECT_LT(difference(logits, expected.gradient), std::max(1e-6, rounding() * 0.125)) << vocabulary;
    EXPECT_EQ(logits[5].abs().max().item<double>(), 0.0);
  }
}

// The vocabulary cut unevenly in three, with the reductions that ranks would do.
TEST_P(CrossEntropyTest, CutVocabularyGivesTheSame) {
  const int64_t vocabulary = 259;
  const at::Tensor logits = normal({9, vocabulary}, 4.0);
  const at::Tensor targets = some_targets(9, vocabulary);
  const Reference expected = reference(logits, targets, 3.0);
  const std::vector<int64_t> cuts = {0, 87, 173, vocabulary};
  for (const bool fused : {true, false}) {
    std::vector<at::Tensor> shards, maxima;
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      shards.push_back(logits.narrow(1, cuts[i], cuts[i + 1] - cuts[i]).contiguous());
      maxima.push_back(fused ? row_max(shards[i]) : plain::row_max(shards[i]));
    }
    const at::Tensor maximum = std::get<0>(at::stack(maxima).max(0));
    EXPECT_TRUE(same_bits(maximum, std::get<0>(logits.to(at::kFloat).max(1))));
    RowSums total{at::zeros({9}), at::zeros({9})};
    for (size_t i = 0; i < shards.size(); ++i) {
      const RowSums part = fused ? row_sums(shards[i], maximum, targets, cuts[i])
                                 : plain::row_sums(shards[i], maximum, targets, cuts[i]);
      total.sum_exp += part.sum_exp;
      total.target_logit += part.target_logit;
    }
    EXPECT_LT(difference(token_losses(maximum, total, targets), expected.losses), 2e-6) << fused;
    for (size_t i = 0; i < shards.size(); ++i) {
      (fused ? softmax_gradient : plain::softmax_gradient)(shards[i], maximum, total.sum_exp, targets, cuts[i], 3.0);
    }
    EXPECT_LT(difference(at::cat(shards, 1), expected.gradient), 2 * std::max(1e-6, rounding())) << fused;
  }
}

TEST_P(CrossEntropyTest, DoesNotOverflowAndShowsNan) {
  const at::Tensor logits = normal({3, 50});
  logits[0][7] = 3e4;
  logits[1].fill_(-3e4);
  logits[2][49] = NAN;
  const at::Tensor targets = at::tensor({7, 3, 1}, at::kLong);
  const at::Tensor losses = loss_and_gradient(logits, targets, 1.0);
  EXPECT_NEAR(losses[0].item<double>(), 0.0, 1e-6);
  EXPECT_NEAR(losses[1].item<double>(), std::log(50.0), 0.01);  // 3e4 has no fraction bits to spare for the log
  EXPECT_TRUE(losses[2].isnan().item<bool>());
  EXPECT_FALSE(logits.narrow(0, 0, 2).isnan().any().item<bool>());
}

TEST_P(CrossEntropyTest, DoesNotDependOnThreads) {
  const at::Tensor logits = normal({64, 3000});
  const at::Tensor again = logits.clone();
  const at::Tensor targets = some_targets(64, 3000);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const at::Tensor one = loss_and_gradient(logits, targets, 1.0);
  at::set_num_threads(3);
  const at::Tensor several = loss_and_gradient(again, targets, 1.0);
  at::set_num_threads(threads);
  EXPECT_TRUE(same_bits(one, several));
  EXPECT_TRUE(same_bits(logits, again));
}

TEST(CrossEntropyChecks, RefuseWhatDoesNotFit) {
  EXPECT_THROW(loss_and_gradient(at::zeros({2, 4}), at::tensor({1, 4}, at::kLong), 1.0), InternalError);
  EXPECT_THROW(loss_and_gradient(at::zeros({2, 4}), at::tensor({1}, at::kLong), 1.0), InternalError);
  EXPECT_THROW(row_max(at::zeros({4})), InternalError);
}

}  // namespace
}  // namespace ridgeline::nn
