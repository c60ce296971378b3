// Experts against a loop over experts, differentiated by libtorch in double precision: losses and gradients of routers and
// experts on one rank, and that recomputation changes no bit. Layouts are the parity matrix's (tests/train).
#include "nn/expert_branch.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "nn/small_model.h"

namespace ridgeline::nn {
namespace {

using spec::Recompute;

struct Result {
  double loss = 0.0, auxiliary = 0.0;
  NamedTensors gradients;
};

bool is_counter(const std::string& name) { return name.ends_with("router.balance"); }

Result reference(const spec::ModelSpec& model, const NamedTensors& whole, const MicroBatch& batch) {
  NamedTensors leaves;
  std::vector<at::Tensor> list;
  for (const auto& [name, value] : whole) {
    leaves[name] = value.to(at::kDouble);
    if (!is_counter(name)) list.push_back(leaves[name].requires_grad_());
  }
  const auto samples = [&](const at::Tensor& of) { return of.view({batch.size, batch.sequence}); };
  at::Tensor auxiliary;
  const at::Tensor loss = reference_loss(leaves, model, samples(batch.tokens), samples(batch.targets), &auxiliary);
  const auto gradients = torch::autograd::grad({(loss + auxiliary) * batch.gradient_scale}, list);
  Result result{loss.item<double>(), auxiliary.item<double>(), {}};
  size_t index = 0;
  for (const auto& [name, value] : whole) {
    if (!is_counter(name)) result.gradients[name] = gradients[index++];
  }
  return result;
}

Result by_stage(SmallStage& small, const MicroBatch& batch, bool split = false) {
  InFlight flight{batch, {}, {}};
  Result result;
  const c10::InferenceMode no_autograd;
  result.loss = small.stage().forward({}, flight).item<double>();
  if (split) {
    small.stage().backward_input({}, flight);
    small.stage().backward_weight(flight, [](int64_t) {});
  } else {
    small.stage().backward({}, flight, [](int64_t) {});
  }
  result.auxiliary = small.context().auxiliary_loss.item<double>();
  for (const spec::FlatEntry& entry : small.parameters().layout().entries) {
    const std::string& name = small.parameters().declared(entry).name;
    result.gradients[name] = small.gradient(name).clone();
  }
  return result;
}

class Experts : public testing::TestWithParam<std::string> {
 protected:
  spec::ModelSpec model_ = small_family(GetParam());
  NamedTensors whole_ = whole_values(model_);
  MicroBatch batch_ = random_batch(model_, 3);
};

TEST_P(Experts, EqualALoopOverThem) {
  OneRank rank(model_, whole_);
  const Result actual = by_stage(rank.small, batch_), expected = reference(model_, whole_, batch_);
  EXPECT_NEAR(actual.loss / expected.loss, 1.0, 1e-6);
  if (model_.router_auxiliary_loss > 0) {
    EXPECT_NEAR(actual.auxiliary / expected.auxiliary, 1.0, 1e-6);
  }
  for (const auto& [name, gradient] : expected.gradients) {
    EXPECT_LT(relative_error(actual.gradients.at(name).view_as(gradient), gradient), 1e-5) << name;
  }
}

TEST_P(Experts, RecomputationAndSplitBackwardChangeNoBit) {
  OneRank plain(model_, whole_);
  const Result expected = by_stage(plain.small, batch_);
  for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
    for (const bool split : {false, true}) {
      OneRank rank(model_, whole_, recompute);
      const Result actual = by_stage(rank.small, batch_, split);
      EXPECT_EQ(actual.loss, expected.loss);
      EXPECT_EQ(actual.auxiliary, expected.auxiliary) << "each micro-batch counts once";
      for (const auto& [name, gradient] : expected.gradients) {
        EXPECT_TRUE(at::equal(actual.gradients.at(name), gradient)) << name << to_string(recompute) << split;
      }
    }
  }
}

TEST_P(Experts, RunInLowPrecision) {
  OneRank rank(model_, whole_, Recompute::none, at::kBFloat16);
  OneRank exact(model_, whole_);
  // Near ties go to other experts, so what is compared is the loss.
  EXPECT_NEAR(by_stage(rank.small, batch_).loss / by_stage(exact.small, batch_).loss, 1.0, 5e-2);
}

INSTANTIATE_TEST_SUITE_P(Families, Experts, testing::ValuesIn(spec::expert_family_names()),
                         [](const auto& info) { return info.param; });

// The bias sends every token past the first two experts.
TEST(ExpertsWithoutTokens, HaveZeroGradients) {
  spec::ModelSpec model = small_family("mixtral");
  model.router_bias_rate = 0.01;
  NamedTensors whole = whole_values(model);
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    whole["layers." + std::to_string(layer) + ".mlp.router.balance"] = at::tensor({-9.0f, -9.0f, 0.0f, 0.0f});
  }
  OneRank rank(model, whole);
  const MicroBatch batch = random_batch(model, 2);
  const Result result = by_stage(rank.small, batch);
  const double tokens = static_cast<double>(batch.tokens_total());
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    const std::string prefix = "layers." + std::to_string(layer) + ".mlp.";
    for (const char* matrix : {"gate", "up", "down"}) {
      const at::Tensor gradient = result.gradients.at(prefix + "experts." + matrix + ".weight");
      for (int64_t expert = 0; expert < 4; ++expert) {
        EXPECT_EQ(gradient[expert].abs().max().item<double>() > 0, expert >= 2) << matrix << expert;
      }
    }
    const at::Tensor counts = result.gradients.at(prefix + "router.balance").to(at::kDouble);
    EXPECT_TRUE(at::equal(counts, at::tensor({0.0, 0.0, tokens, tokens}, at::kDouble))) << counts;
  }
}

TEST(ExpertCapacity, ChangesTrainingAlone) {
  spec::ModelSpec model = small_family("mixtral");
  const NamedTensors whole = whole_values(model);
  MicroBatch batch = random_batch(model, 2);
  const auto loss = [&](double factor, bool training) {
    model.capacity_factor = factor;
    batch.training = training;
    OneRank rank(model, whole);
    return rank.small.stage().forward_only({}, batch).item<double>();
  };
  EXPECT_EQ(loss(0, true), loss(0, false));
  EXPECT_NE(loss(0.5, true), loss(0, true));
  EXPECT_EQ(loss(0.5, false), loss(0, false));
  EXPECT_EQ(loss(100, true), loss(0, true));
}

// A sample's tokens are dropped alike whatever other samples are in the micro-batch.
TEST(ExpertCapacity, KnowsNothingOfOtherSamples) {
  spec::ModelSpec model = small_family("shared_experts");
  model.capacity_factor = 0.75;
  const NamedTensors whole = whole_values(model);
  const MicroBatch both = random_batch(model, 2);
  OneRank rank(model, whole);
  double sum = 0;
  for (int64_t sample = 0; sample < 2; ++sample) {
    MicroBatch one = both;
    one.size = 1;
    one.tokens = both.tokens.narrow(0, sample * model.sequence, model.sequence).contiguous();
    one.targets = both.targets.narrow(0, sample * model.sequence, model.sequence).contiguous();
    sum += rank.small.stage().forward_only({}, one).item<double>();
  }
  EXPECT_NEAR(rank.small.stage().forward_only({}, both).item<double>() / sum, 1.0, 1e-6);
}

}  // namespace
}  // namespace ridgeline::nn
