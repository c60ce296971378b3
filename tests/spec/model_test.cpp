#include "spec/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "spec/parameters.h"

namespace ridgeline::spec {
namespace {

// Billions of parameters that each name promises.
TEST(Presets, HaveTheSizesOfTheirNames) {
  EXPECT_NEAR(parameter_count(model_preset("gpt2-124m")) / 1e6, 124, 1);
  EXPECT_NEAR(parameter_count(model_preset("gpt2-350m")) / 1e6, 355, 5);
  EXPECT_NEAR(parameter_count(model_preset("gpt-1.3b")) / 1e9, 1.3, 0.05);
  EXPECT_NEAR(parameter_count(model_preset("gpt-22b")) / 1e9, 22, 0.5);
  EXPECT_NEAR(parameter_count(model_preset("gpt-175b")) / 1e9, 175, 0.5);
  EXPECT_NEAR(parameter_count(model_preset("gpt-1t")) / 1e12, 1.0, 0.02);
}

// Elements of the published weights, as transformers counts them too (foreign_counts.py).
TEST(Presets, OfPublishedWeightsHaveTheirParametersToTheLast) {
  EXPECT_EQ(parameter_count(model_preset("llama2-7b")), 6'738'415'616);
  EXPECT_EQ(parameter_count(model_preset("llama3-8b")), 8'030'261'248);
  EXPECT_EQ(parameter_count(model_preset("llama3-70b")), 70'553'706'496);
  EXPECT_EQ(parameter_count(model_preset("llama3-405b")), 405'853'388'800);
  EXPECT_EQ(parameter_count(model_preset("mixtral-8x7b")), 46'702'792'704);
  EXPECT_EQ(parameter_count(model_preset("qwen2.5-7b")), 7'615'616'512);
  EXPECT_EQ(parameter_count(model_preset("gpt2-124m")), 124'439'808);
  EXPECT_EQ(parameter_count(model_preset("mistral-7b")), 7'241'732'096);
  EXPECT_EQ(parameter_count(model_preset("qwen3-0.6b")), 596'049'920);
  EXPECT_EQ(parameter_count(model_preset("qwen3-4b")), 4'022'468'096);
  EXPECT_EQ(parameter_count(model_preset("qwen3-8b")), 8'190'735'360);
  EXPECT_EQ(parameter_count(model_preset("qwen3-32b")), 32'762'123'264);
}

TEST(Presets, AreAllValidAndUnknownOnesNameTheNearest) {
  for (const std::string& name : model_preset_names()) EXPECT_NO_THROW(validate(model_preset(name))) << name;
  try {
    model_preset("gpt-170b");
    ADD_FAILURE() << "accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("did you mean 'gpt-175b'?"));
    EXPECT_THAT(error.what(), testing::HasSubstr("gpt-tiny, gpt2-124m"));
  }
}

TEST(ValidateModel, RefusesEachBadField) {
  const auto refused = [](auto change, const char* key) {
    ModelSpec model;
    change(model);
    try {
      validate(model);
      ADD_FAILURE() << key << " accepted";
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), testing::StartsWith(std::string(key) + " = "));
    }
  };
  refused([](ModelSpec& m) { m.layers = 0; }, "model.layers");
  refused([](ModelSpec& m) { m.hidden = 1LL << 40; }, "model.hidden");
  refused([](ModelSpec& m) { m.heads = 0; }, "model.heads");
  refused([](ModelSpec& m) { m.heads = 3; }, "model.heads");
  refused([](ModelSpec& m) { m.ffn_hidden = -1; }, "model.ffn_hidden");
  refused([](ModelSpec& m) { m.vocabulary = 1; }, "model.vocabulary");
  refused([](ModelSpec& m) { m.sequence = 0; }, "model.sequence");
  refused([](ModelSpec& m) { m.kv_heads = 3; }, "model.kv_heads");
  refused([](ModelSpec& m) { m.kv_heads = 8; }, "model.kv_heads");
  refused([](ModelSpec& m) { m.head_width = -1; }, "model.head_width");
  refused([](ModelSpec& m) { m.head_width = 65'536, m.heads = 128; }, "model.head_width");
  refused([](ModelSpec& m) { m.head_width = 33, m.positions = Positions::rotary; }, "model.positions");
  refused([](ModelSpec& m) { m.sliding_window = -1; }, "model.sliding_window");
  refused([](ModelSpec& m) { m.rotary.base = 1; }, "model.rotary_base");
  refused([](ModelSpec& m) { m.rotary.factor = 0.5; }, "model.rotary_factor");
  refused([](ModelSpec& m) { m.rotary.scaling = RotaryScaling::yarn; }, "model.rotary_original_sequence");
  refused([](ModelSpec& m) { m.rotary.low_frequency = 5; }, "model.rotary_low_frequency");
  refused([](ModelSpec& m) { m.rotary.beta_slow = 40; }, "model.rotary_beta_slow");
  refused([](ModelSpec& m) { m.ffn_hidden = 9'000'000, m.gated_mlp = true; }, "model.ffn_hidden");
  refused([](ModelSpec& m) { m.experts = -1; }, "model.experts");
  refused([](ModelSpec& m) { m.experts = 100'000, m.expert_ffn_hidden = 10'000'000; }, "model.experts");
  refused([](ModelSpec& m) { m.experts = 2, m.experts_per_token = 3; }, "model.experts_per_token");
  refused([](ModelSpec& m) { m.experts = 2, m.expert_ffn_hidden = -1; }, "model.expert_ffn_hidden");
  refused([](ModelSpec& m) { m.shared_ffn_hidden = 64; }, "model.shared_ffn_hidden");
  // Each key within its bounds, and their product out of all.
  refused([](ModelSpec& m) { m.layers = 100'000, m.hidden = 1'000'000, m.ffn_hidden = 10'000'000; }, "model.layers");
  refused([](ModelSpec& m) { m.norm_epsilon = -1; }, "model.norm_epsilon");
  refused([](ModelSpec& m) { m.init_std = -1; }, "model.init_std");
  refused([](ModelSpec& m) { m.dropout = 1; }, "model.dropout");
  refused([](ModelSpec& m) { m.attention_dropout = -0.1; }, "model.attention_dropout");
}

TEST(RequireTrainable, TakesAllButWhatIsForPlanning) {
  for (const std::string& name : model_preset_names()) {
    EXPECT_NO_THROW(require_trainable(model_preset(name))) << name;
  }
  const auto refused = [](auto change, const char* begin) {
    ModelSpec model;
    change(model);
    try {
      require_trainable(model);
      ADD_FAILURE() << begin << " accepted";
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), testing::StartsWith(begin));
      EXPECT_THAT(error.what(), testing::HasSubstr("planning commands (`plan`, `simulate`) take this model"));
    }
  };
  refused([](ModelSpec& m) { m.experts = 4; }, "model.gated_mlp = false: ");
  refused([](ModelSpec& m) { m.experts = 4, m.gated_mlp = true; }, "model.biases = all: ");
  refused([](ModelSpec& m) { m.embedding_norm = true; }, "model.embedding_norm = true: ");
}

}  // namespace
}  // namespace ridgeline::spec
