#include "cost/flops.h"

#include <gtest/gtest.h>

#include "spec/parameters.h"

namespace ridgeline::cost {
namespace {

using spec::ModelSpec;
using spec::Recompute;
using spec::Strategy;

ModelSpec shape(int64_t layers, int64_t hidden, int64_t heads, int64_t vocabulary, int64_t sequence) {
  ModelSpec model;
  model.layers = layers;
  model.hidden = hidden;
  model.heads = heads;
  model.vocabulary = vocabulary;
  model.sequence = sequence;
  return model;
}

// The three models of Dash et al. (arXiv 2312.12705).
std::vector<ModelSpec> study_models() {
  return {shape(48, 6144, 48, 50257, 2048), shape(96, 12288, 96, 50257, 2048), shape(128, 25600, 200, 50257, 2048)};
}

// factor B s L h^2 (1 + s / 6h + V / (v L h)): the study counts with factors 96 and 72, and v = 16.
double study_formula(const ModelSpec& model, double samples, double factor, double v) {
  const double s = static_cast<double>(model.sequence), h = static_cast<double>(model.hidden);
  const double l = static_cast<double>(model.layers), vocabulary = static_cast<double>(model.vocabulary);
  return factor * samples * s * l * h * h * (1 + s / (6 * h) + vocabulary / (v * l * h));
}

TEST(Flops, OfFullRecomputationAreTheStudys) {
  for (const ModelSpec& model : study_models()) {
    Strategy strategy;
    strategy.global_batch = 640;
    strategy.recompute = Recompute::full;
    const double expected = study_formula(model, 640, 96, 16);
    EXPECT_NEAR(step_hardware_flops(model, strategy) / expected, 1.0, 1e-12);
  }
}

// Without recomputation the study keeps v = 16, which is right for factor 96 alone: at factor 72 it gives the logits
// 4.5 B s h V of their 6 B s h V. Ours counts them whole, which is v = 12.
TEST(Flops, WithoutRecomputationDifferFromTheStudysByAQuarterOfTheLogits) {
  for (const ModelSpec& model : study_models()) {
    Strategy strategy;
    strategy.global_batch = 640;
    const double ours = step_model_flops(model, strategy);
    EXPECT_EQ(ours, step_hardware_flops(model, strategy));
    EXPECT_NEAR(ours / study_formula(model, 640, 72, 12), 1.0, 1e-12);
    const double missing = 1.5 * 640.0 * static_cast<double>(model.sequence * model.hidden * model.vocabulary);
    EXPECT_NEAR((study_formula(model, 640, 72, 16) + missing) / ours, 1.0, 1e-12);
  }
}

// So the MFU behind the study's percentages is three quarters of them, and slightly more for the head is not repeated.
TEST(Flops, ModelShareOfFullRecomputationIsThreeQuarters) {
  for (const ModelSpec& model : study_models()) {
    const PassFlops sample = sample_flops(model, Recompute::full);
    EXPECT_GT(sample.model_flops() / sample.hardware_flops(), 0.75);
    EXPECT_LT(sample.model_flops() / sample.hardware_flops(), 0.76);
  }
}

// 6 N D is the usual estimate: it leaves out attention (s / 6h of the layers), so it is close for wide models.
TEST(Flops, AreCloseToSixTimesParametersTimesTokens) {
  for (const ModelSpec& model : study_models()) {
    const double estimate = 6.0 * static_cast<double>(parameter_count(model)) * static_cast<double>(model.sequence);
    const double ratio = sample_flops(model, Recompute::none).model_flops() / estimate;
    EXPECT_GT(ratio, 1.0);
    EXPECT_LT(ratio, 1.06);
  }
}

TEST(Flops, CountEachProductOfASmallLayerByHand) {
  const ModelSpec model = shape(2, 8, 2, 11, 4);
  // qkv 2*4*8*24, scores and context 2*4*4*8 each, output 2*4*8*8, MLP 2 * 2*4*8*32.
  const PassFlops layer = unit_flops(model, Recompute::none, spec::layer_unit(1));
  EXPECT_EQ(layer.forward, 1536 + 256 + 256 + 512 + 4096);
  EXPECT_EQ(layer.backward, 2 * layer.forward);
  EXPECT_EQ(layer.recompute, 0);
  EXPECT_EQ(unit_flops(model, Recompute::full, spec::layer_unit(1)).recompute, layer.forward);
  EXPECT_EQ(unit_flops(model, Recompute::selective, spec::layer_unit(1)).recompute, 0);
  const PassFlops head = unit_flops(model, Recompute::full, spec::head_unit(model));
  EXPECT_EQ(head.forward, 2 * 4 * 8 * 11);
  EXPECT_EQ(head.recompute, 0);
  EXPECT_EQ(unit_flops(model, Recompute::full, spec::embedding_unit()).hardware_flops(), 0);
  EXPECT_EQ(sample_flops(model, Recompute::none).forward, 2 * layer.forward + head.forward);
}

TEST(Flops, FollowTheWidthOfTheMlp) {
  ModelSpec model = shape(2, 8, 2, 11, 4);
  const double usual = unit_flops(model, Recompute::none, 1).forward;
  model.ffn_hidden = 33;
  EXPECT_EQ(unit_flops(model, Recompute::none, 1).forward - usual, 2 * 2 * 4 * 8 * 1);
}

// Whatever the layout, the devices together do the step's FLOPs, no more and no less; uneven shards included.
TEST(Flops, OfAllDevicesAddUpToTheStep) {
  ModelSpec model = shape(12, 24, 4, 257, 16);
  model.ffn_hidden = 99;  // does not divide by 2 or 4
  for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
    for (const int64_t tensor : {1, 2, 4}) {
      for (const int64_t pipeline : {1, 3, 5, 12}) {
        Strategy strategy;
        strategy.tensor = tensor;
        strategy.pipeline = pipeline;
        strategy.data = 2;
        strategy.micro_batch = 3;
        strategy.global_batch = 24;
        strategy.recompute = recompute;
        PassFlops all;
        for (int64_t stage = 0; stage < pipeline; ++stage) {
          for (int64_t rank = 0; rank < tensor; ++rank) all += device_flops(model, strategy, stage, rank);
        }
        const double times = static_cast<double>(strategy.micro_batches() * strategy.data);
        EXPECT_NEAR(times * all.model_flops() / step_model_flops(model, strategy), 1.0, 1e-12);
        EXPECT_NEAR(times * all.hardware_flops() / step_hardware_flops(model, strategy), 1.0, 1e-12);
      }
    }
  }
}

// A token's forward multiplies by each element of each matrix that it meets once; the scores and their sum are apart.
TEST(Flops, OfOtherFamiliesAreTwoAMatrixElementAndToken) {
  for (const std::string& name : spec::model_preset_names()) {
    const ModelSpec model = spec::model_preset(name);
    double elements = 0;
    for (const spec::ParameterSpec& parameter : spec::declare_parameters(model, Strategy())) {
      if (parameter.shape.size() < 2 || parameter.name.find("embedding") == 0) continue;
      if (parameter.name.find("bias") != std::string::npos) continue;
      const bool routed = parameter.name.find(".experts.") != std::string::npos;
      const double met = routed ? static_cast<double>(model.experts_per_token) / static_cast<double>(model.experts) : 1;
      elements += met * static_cast<double>(parameter.elements());
    }
    if (model.tied) elements += static_cast<double>(model.vocabulary * model.hidden);
    const double tokens = static_cast<double>(model.sequence);
    const double scores = 4 * tokens * tokens * static_cast<double>(model.layers * model.query_width());
    const double forward = sample_flops(model, Recompute::none).forward;
    EXPECT_NEAR(forward / (2 * tokens * elements + scores), 1.0, 1e-12) << name;
  }
}

}  // namespace
}  // namespace ridgeline::cost
