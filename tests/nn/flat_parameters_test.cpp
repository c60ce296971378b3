// Initial values are the same in every sharding and have the moments that were declared; views lie where the layout
// says.
#include "nn/flat_parameters.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "nn/small_model.h"

namespace ridgeline::nn {
namespace {

FlatParameters make(const spec::ModelSpec& model, const std::vector<spec::Range>& stages, int64_t stage, int64_t tensor,
                    int64_t rank, int64_t data, at::ScalarType compute) {
  spec::Strategy strategy;
  strategy.tensor = tensor;
  std::vector<spec::ParameterSpec> declared = spec::declare_parameters(model, strategy);
  spec::FlatLayout layout = spec::make_flat_layout(declared, spec::one_chunk_stages(stages), stage, tensor, rank, data,
                                                   /*bucket_mib=*/0.01);
  return FlatParameters(std::move(declared), std::move(layout), compute, at::kCPU);
}

TEST(FlatParameters, InitialValuesAreTheSameInEverySharding) {
  const spec::ModelSpec model = small_model();
  const int64_t units = spec::unit_count(model);
  FlatParameters whole = make(model, {{0, units}}, 0, 1, 0, 1, at::kFloat);
  whole.initialise(42, [](const auto&...) {});
  const std::vector<std::vector<spec::Range>> cuts = {{{0, units}}, {{0, 2}, {2, units}}};
  for (const auto& stages : cuts) {
    for (const int64_t tensor : {1, 2, 4}) {
      std::map<std::string, int64_t> elements;
      for (int64_t stage = 0; stage < static_cast<int64_t>(stages.size()); ++stage) {
        for (int64_t rank = 0; rank < tensor; ++rank) {
          FlatParameters part = make(model, stages, stage, tensor, rank, 3, at::kFloat);
          part.initialise(42, [](const auto&...) {});
          for (const spec::FlatEntry& entry : part.layout().entries) {
            const std::string& name = part.declared(entry).name;
            const at::Tensor expected = slice_of(whole.parameter(name).value, entry.box);
            EXPECT_TRUE(at::equal(part.parameter(name).value, expected))
                << name << " on rank " << rank << " of " << tensor;
            elements[name] += entry.box.elements();
          }
        }
      }
      EXPECT_EQ(elements.size(), whole.declared().size()) << "some parameter is held by no stage";
      for (const spec::ParameterSpec& parameter : whole.declared()) {
        EXPECT_GE(elements[parameter.name], parameter.elements()) << parameter.name << " is not whole";
      }
    }
  }
}

TEST(FlatParameters, InitialValuesHaveTheDeclaredMoments) {
  const spec::ModelSpec model = spec::model_preset("gpt-tiny");
  FlatParameters parameters = make(model, {{0, spec::unit_count(model)}}, 0, 1, 0, 1, at::kFloat);
  parameters.initialise(1, [](const auto&...) {});
  for (const spec::ParameterSpec& parameter : parameters.declared()) {
    const at::Tensor value = parameters.parameter(parameter.name).value.to(at::kDouble).view({-1});
    if (parameter.initial != spec::Initial::normal) {
      const double constant = parameter.initial == spec::Initial::ones ? 1.0 : 0.0;
      EXPECT_TRUE(value.eq(constant).all().item<bool>()) << parameter.name;
      continue;
    }
    // Estimates of n elements scatter by std / sqrt(n), std / sqrt(2 n) and sqrt(24 / n); five times that never
    // happens.
    const double count = static_cast<double>(value.numel());
    const double mean = value.mean().item<double>(), std = value.std().item<double>();
    const double kurtosis = ((value - mean) / std).pow(4).mean().item<double>();
    EXPECT_NEAR(mean / parameter.std, 0.0, 5 / std::sqrt(count)) << parameter.name;
    EXPECT_NEAR(std / parameter.std, 1.0, 5 / std::sqrt(2 * count)) << parameter.name;
    EXPECT_NEAR(kurtosis, 3.0, 5 * std::sqrt(24 / count)) << parameter.name;
  }
}

TEST(FlatParameters, SeedsAndNamesGiveOtherValues) {
  const spec::ModelSpec model = small_model();
  FlatParameters one = make(model, {{0, spec::unit_count(model)}}, 0, 1, 0, 1, at::kFloat);
  FlatParameters two = make(model, {{0, spec::unit_count(model)}}, 0, 1, 0, 1, at::kFloat);
  one.initialise(1, [](const auto&...) {});
  two.initialise(2, [](const auto&...) {});
  const auto value = [](const FlatParameters& of, const char* name) { return of.parameter(name).value; };
  EXPECT_FALSE(at::equal(value(one, "layers.0.mlp.up.weight"), value(two, "layers.0.mlp.up.weight")));
  EXPECT_FALSE(at::equal(value(one, "layers.0.mlp.up.weight"), value(one, "layers.1.mlp.up.weight")));
}

TEST(FlatParameters, MastersAreNotRounded) {
  const spec::ModelSpec model = small_model();
  FlatParameters parameters = make(model, {{0, spec::unit_count(model)}}, 0, 1, 0, 1, at::kBFloat16);
  int64_t rounded = 0;
  parameters.initialise(7, [&](const spec::FlatEntry& entry, const spec::Range& flat, const at::Tensor& master) {
    const spec::ParameterSpec& parameter = parameters.declared(entry);
    EXPECT_EQ(flat, entry.range);
    EXPECT_TRUE(at::equal(master, initial_value(parameter, entry.box, 7).view({-1}))) << parameter.name;
    if (!at::equal(master, master.to(at::kBFloat16).to(at::kFloat))) ++rounded;
  });
  EXPECT_GT(rounded, 0);
  for (const spec::FlatEntry& entry : parameters.layout().entries) {
    const spec::ParameterSpec& parameter = parameters.declared(entry);
    EXPECT_TRUE(
        at::equal(parameters.parameter(parameter.name).value, initial_value(parameter, entry.box, 7).to(at::kBFloat16)))
        << parameter.name;
  }
}

TEST(FlatParameters, ViewsAreDisjointAndPaddingStaysZero) {
  const spec::ModelSpec model = small_model();
  FlatParameters parameters = make(model, {{0, spec::unit_count(model)}}, 0, 2, 1, 7, at::kFloat);
  for (const spec::FlatEntry& entry : parameters.layout().entries) {
    const Parameter view = parameters.parameter(parameters.declared(entry).name);
    EXPECT_EQ(view.value.sizes().vec(), entry.box.extent);
    EXPECT_TRUE(view.value.eq(0).all().item<bool>()) << "two views overlap";
    view.value.fill_(1);
    view.gradient.fill_(2);
  }
  const at::Tensor values = parameters.kept_values(), gradients = parameters.kept_gradients();
  int64_t held = 0;
  for (const spec::FlatEntry& entry : parameters.layout().entries) held += entry.box.elements();
  EXPECT_EQ(values.sum(at::kDouble).item<double>(), static_cast<double>(held));
  EXPECT_EQ(gradients.sum(at::kDouble).item<double>(), 2.0 * static_cast<double>(held));
  EXPECT_LT(held, values.numel()) << "the test wants padding";
  EXPECT_EQ(gradients.scalar_type(), at::kFloat);
}

TEST(FlatParameters, AParameterOfAnotherStageIsAFault) {
  const spec::ModelSpec model = small_model();
  const FlatParameters first = make(model, {{0, 2}, {2, spec::unit_count(model)}}, 0, 1, 0, 1, at::kFloat);
  EXPECT_NO_THROW(first.parameter("layers.0.mlp.up.weight"));
  EXPECT_THROW(first.parameter("layers.1.mlp.up.weight"), InternalError);
}

}  // namespace
}  // namespace ridgeline::nn
