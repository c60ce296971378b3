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
  refused([](ModelSpec& m) { m.norm_epsilon = -1; }, "model.norm_epsilon");
  refused([](ModelSpec& m) { m.init_std = -1; }, "model.init_std");
  refused([](ModelSpec& m) { m.dropout = 1; }, "model.dropout");
  refused([](ModelSpec& m) { m.attention_dropout = -0.1; }, "model.attention_dropout");
}

}  // namespace
}  // namespace ridgeline::spec
