// The explicit backward of a whole stage against libtorch's autograd of the same formulas in double precision, and what
// must not change a bit: recomputation, a backward in two halves, the cut in stages.
#include "nn/stage.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/error.h"
#include "nn/small_model.h"

namespace ridgeline::nn {
namespace {

using spec::Recompute;

struct Result {
  double loss = 0.0;
  NamedTensors gradients;
};

// Loss and gradients by autograd, from values rounded to `compute` first, so that only the arithmetic differs. Each
// sample is cut in `documents` of these lengths, which know nothing of each other.
Result reference(const spec::ModelSpec& model, const NamedTensors& whole, const MicroBatch& batch, at::ScalarType compute,
                 const std::vector<int64_t>& documents) {
  NamedTensors leaves;
  std::vector<at::Tensor> list;
  for (const auto& [name, value] : whole) {
    leaves[name] = value.to(compute).to(at::kDouble).requires_grad_();
    list.push_back(leaves[name]);
  }
  at::Tensor loss = at::zeros({}, at::kDouble);
  int64_t begin = 0;
  for (const int64_t length : documents) {
    const auto cut = [&](const at::Tensor& of) {
      return of.view({batch.size, batch.sequence}).narrow(1, begin, length).contiguous();
    };
    loss = loss + reference_loss(leaves, model, cut(batch.tokens), cut(batch.targets));
    begin += length;
  }
  const auto gradients = torch::autograd::grad({loss * batch.gradient_scale}, list);
  Result result{loss.item<double>(), {}};
  size_t index = 0;
  for (const auto& [name, value] : whole) result.gradients[name] = gradients[index++];
  return result;
}

Result reference(const spec::ModelSpec& model, const NamedTensors& whole, const MicroBatch& batch, at::ScalarType compute) {
  return reference(model, whole, batch, compute, {batch.sequence});
}

void nothing(int64_t) {}

Result by_stage(SmallStage& small, const std::vector<MicroBatch>& batches, bool split = false) {
  std::vector<InFlight> flights;
  Result result;
  for (const MicroBatch& batch : batches) {
    flights.push_back({batch, {}, {}});
    result.loss += small.stage().forward({}, flights.back()).item<double>();
  }
  for (InFlight& flight : flights) {
    if (split) {
      small.stage().backward_input({}, flight);
    } else {
      small.stage().backward({}, flight, nothing);
    }
  }
  if (split) {
    for (InFlight& flight : flights) small.stage().backward_weight(flight, nothing);
  }
  for (const spec::FlatEntry& entry : small.parameters().layout().entries) {
    const std::string& name = small.parameters().declared(entry).name;
    result.gradients[name] = small.gradient(name).clone();
  }
  return result;
}

void expect_same_bits(const Result& actual, const Result& expected) {
  EXPECT_EQ(actual.loss, expected.loss);
  ASSERT_EQ(actual.gradients.size(), expected.gradients.size());
  for (const auto& [name, gradient] : expected.gradients) {
    EXPECT_TRUE(at::equal(actual.gradients.at(name), gradient)) << name;
    EXPECT_GT(gradient.abs().max().item<double>(), 0.0) << name;
  }
}

struct Bounds {
  double loss, gradient;
};

// Rounding of one operation is 2^-24, 2^-9 and 2^-12; a gradient goes through some forty of them, and those of heads'
// norms and key biases are sums that cancel.
Bounds bounds_of(at::ScalarType compute) {
  if (compute == at::kBFloat16) return {2e-3, 5e-2};
  if (compute == at::kHalf) return {3e-4, 4e-3};
  return {1e-6, 1e-5};
}

using GradientCase = std::tuple<std::string, int64_t, at::ScalarType>;  // family, samples of the micro-batch, precision
class StageGradients : public testing::TestWithParam<GradientCase> {};

TEST_P(StageGradients, EqualThoseOfAutograd) {
  const auto [family, size, compute] = GetParam();
  const spec::ModelSpec model = small_family(family);
  const NamedTensors whole = whole_values(model);
  MicroBatch batch = random_batch(model, size);
  batch.targets.narrow(0, 5, 2).fill_(kIgnoredTarget);
  if (compute == at::kHalf) batch.gradient_scale *= 1024;  // as the loss scale does: small gradients keep their digits
  OneRank rank(model, whole, Recompute::none, compute);
  const Result actual = by_stage(rank.small, {batch});
  const Result expected = reference(model, whole, batch, compute);
  const Bounds bounds = bounds_of(compute);
  EXPECT_NEAR(actual.loss / expected.loss, 1.0, bounds.loss);
  ASSERT_EQ(actual.gradients.size(), whole.size());
  for (const auto& [name, gradient] : expected.gradients) {
    EXPECT_LT(relative_error(actual.gradients.at(name).view_as(gradient), gradient), bounds.gradient) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, StageGradients,
                         testing::Combine(testing::ValuesIn(spec::family_names()), testing::Values(1, 3),
                                          testing::Values(at::kFloat, at::kBFloat16, at::kHalf)),
                         [](const auto& info) {
                           return fmt::format("{}_{}_{}", std::get<0>(info.param), std::get<1>(info.param),
                                              c10::toString(std::get<2>(info.param)));
                         });

class SeparateDocuments : public testing::TestWithParam<std::string> {};

TEST_P(SeparateDocuments, AreAsSamplesOfTheirOwn) {
  const spec::ModelSpec model = small_family(GetParam());
  const NamedTensors whole = whole_values(model);
  MicroBatch batch = random_batch(model, 2);
  const std::vector<int64_t> lengths = {7, 1, 4};
  std::vector<at::Tensor> places;
  for (const int64_t length : lengths) places.push_back(at::arange(length, at::kLong));
  batch.positions = at::cat(places).repeat({2});
  batch.documents = batch.positions.view({2, -1}).eq(0).cumsum(1);
  OneRank rank(model, whole);
  const Result actual = by_stage(rank.small, {batch});
  const Result expected = reference(model, whole, batch, at::kFloat, lengths);
  EXPECT_NEAR(actual.loss / expected.loss, 1.0, 1e-6);
  for (const auto& [name, gradient] : expected.gradients) {
    EXPECT_LT(relative_error(actual.gradients.at(name).view_as(gradient), gradient), 1e-5) << name;
  }
  EXPECT_GT(std::abs(reference(model, whole, batch, at::kFloat).loss / expected.loss - 1), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Families, SeparateDocuments, testing::ValuesIn(spec::family_names()),
                         [](const auto& info) { return info.param; });

using ExactCase = std::tuple<std::string, double, at::ScalarType>;  // family, dropout, precision
class StageExactness : public testing::TestWithParam<ExactCase> {
 protected:
  void SetUp() override {
    model_.dropout = model_.attention_dropout = std::get<1>(GetParam());
    for (const int64_t number : {0, 1}) batches_.push_back(random_batch(model_, 2, number));
  }
  Result run(Recompute recompute, bool split) {
    OneRank rank(model_, whole_, recompute, std::get<2>(GetParam()));
    return by_stage(rank.small, batches_, split);
  }
  spec::ModelSpec model_ = small_family(std::get<0>(GetParam()));
  NamedTensors whole_ = whole_values(model_);
  std::vector<MicroBatch> batches_;  // all in flight at once
};

TEST_P(StageExactness, RecomputationAndSplitBackwardChangeNoBit) {
  const Result plain = run(Recompute::none, /*split=*/false);
  for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
    for (const bool split : {false, true}) {
      SCOPED_TRACE(spec::to_string(recompute) + (split ? ", split" : ""));
      expect_same_bits(run(recompute, split), plain);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, StageExactness,
                         testing::Combine(testing::ValuesIn(spec::family_names()), testing::Values(0.0, 0.25),
                                          testing::Values(at::kFloat, at::kBFloat16)),
                         [](const auto& info) {
                           return fmt::format("{}_{}_{}", std::get<0>(info.param),
                                              std::get<1>(info.param) > 0 ? "dropout" : "plain",
                                              c10::toString(std::get<2>(info.param)));
                         });

TEST(Stage, DropoutIsKeyedByStepAndSampleAndOffInEvaluation) {
  spec::ModelSpec model = small_model();
  const NamedTensors whole = whole_values(model);
  const MicroBatch batch = random_batch(model, 2);
  const auto loss = [&](const MicroBatch& of) {
    OneRank rank(model, whole);
    return rank.small.stage().forward_only({}, of).item<double>();
  };
  const double without = loss(batch);
  model.dropout = 0.25;
  MicroBatch other_step = batch, other_samples = batch, evaluated = batch;
  other_step.step += 1;
  other_samples.samples = batch.samples + 2;
  evaluated.training = false;
  EXPECT_EQ(loss(batch), loss(batch));
  EXPECT_NE(loss(batch), loss(other_step));
  EXPECT_NE(loss(batch), loss(other_samples));
  EXPECT_NE(loss(batch), without);
  EXPECT_EQ(loss(evaluated), without);
}

// Stages of one process, handing tensors on as the pipeline does.
TEST(Stage, CutInThreeEqualsTheWhole) {
  const spec::ModelSpec model = small_model(/*tied=*/false);
  const NamedTensors whole = whole_values(model);
  const MicroBatch batch = random_batch(model, 2);
  OneRank one(model, whole);
  const Result expected = by_stage(one.small, {batch});

  const mesh::Communicator alone = mesh::Communicator::make_single("tensor");
  std::vector<std::unique_ptr<SmallStage>> stages;
  for (const spec::Range units : {spec::Range{0, 1}, spec::Range{1, 3}, spec::Range{3, 4}}) {
    stages.push_back(std::make_unique<SmallStage>(model, spec::Strategy(), alone, at::kFloat, whole, units));
  }
  EXPECT_TRUE(stages[0]->stage().is_first() && !stages[0]->stage().is_last());
  EXPECT_TRUE(!stages[2]->stage().is_first() && stages[2]->stage().is_last());
  std::vector<InFlight> flights(3);
  at::Tensor passed;
  for (size_t index = 0; index < 3; ++index) {
    flights[index].batch = batch;
    passed = stages[index]->stage().forward(passed, flights[index]);
    if (index < 2) {
      EXPECT_EQ(passed.sizes().vec(), stages[index]->stage().boundary_shape(batch));
    }
  }
  Result actual{passed.item<double>(), {}};
  std::vector<int64_t> finished;
  at::Tensor gradient;
  for (size_t index = 3; index-- > 0;) {
    gradient = stages[index]->stage().backward(gradient, flights[index], [&](int64_t unit) { finished.push_back(unit); });
    for (const spec::FlatEntry& entry : stages[index]->parameters().layout().entries) {
      const std::string& name = stages[index]->parameters().declared(entry).name;
      actual.gradients[name] = stages[index]->gradient(name);
    }
  }
  expect_same_bits(actual, expected);
  EXPECT_EQ(finished, (std::vector<int64_t>{3, 2, 1, 0}));
}

TEST(Stage, LogitsAndForwardOnlyGiveTheSameLoss) {
  const spec::ModelSpec model = small_model();
  const NamedTensors whole = whole_values(model);
  const MicroBatch batch = random_batch(model, 3);
  OneRank rank(model, whole);
  const double expected = reference(model, whole, batch, at::kFloat).loss;
  EXPECT_NEAR(rank.small.stage().forward_only({}, batch).item<double>() / expected, 1.0, 1e-6);
  const at::Tensor logits = rank.small.stage().logits({}, batch);
  ASSERT_EQ(logits.sizes().vec(), (std::vector<int64_t>{36, model.vocabulary}));
  const at::Tensor loss = at::cross_entropy_loss(logits.to(at::kDouble), batch.targets, {}, at::Reduction::Sum);
  EXPECT_NEAR(loss.item<double>() / expected, 1.0, 1e-6);
}

}  // namespace
}  // namespace ridgeline::nn
