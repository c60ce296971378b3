// config.json of transformers: shapes, and what is refused.
#include <gmock/gmock.h>

#include "source_folder.h"
#include "spec/config.h"
#include "spec/foreign_fixture.h"
#include "spec/parameters.h"

namespace ridgeline::spec {
namespace {

using testing::Contains;
using testing::HasSubstr;

TEST_F(Foreign, ShapesHaveTheParametersOfThePublishedWeights) {
  const auto count = [](const char* name) { return parameter_count(fixture(name).spec.model); };
  EXPECT_EQ(count("gpt2.json"), 124'439'808);
  EXPECT_EQ(count("llama3-8b.json"), 8'030'261'248);
  EXPECT_EQ(count("llama2-70b.json"), 68'976'648'192);
  EXPECT_EQ(count("mistral-7b.json"), 7'241'732'096);
  EXPECT_EQ(count("mixtral-8x7b.json"), 46'702'792'704);
  EXPECT_EQ(count("qwen2.5-7b.json"), 7'615'616'512);
  EXPECT_EQ(count("qwen3-4b.json"), 4'022'468'096);
  EXPECT_EQ(count("qwen3-30b-a3b.json"), 30'532'122'624);
}

TEST_F(Foreign, EveryKeyOfAConfigJsonIsAccountedForOnce) {
  const ForeignConfig config = fixture("llama3-8b.json");
  EXPECT_EQ(config.format, "Hugging Face config.json (llama)");
  EXPECT_TRUE(config.has_model);
  EXPECT_EQ(config.understood.size() + config.beyond.size() + config.ignored.size(), 23u);
  EXPECT_EQ(meaning(config.understood, "/num_key_value_heads"), "model.kv_heads = 8");
  EXPECT_THAT(meaning(config.understood, "/torch_dtype"), HasSubstr("precision.compute = \"bf16\""));
  EXPECT_EQ(meaning(config.understood, "/rope_theta"), "model.rotary_base = 500000");
  EXPECT_EQ(meaning(config.ignored, "/rope_scaling"), "has no effect with this kind of scaling");
  EXPECT_TRUE(config.missing.empty());
}

TEST_F(Foreign, DefaultsOfTransformersAreSaid) {
  const ForeignConfig config = fixture("llama2-70b.json");
  EXPECT_FALSE(config.spec.model.tied);
  EXPECT_THAT(config.assumed, Contains("model.tied = false (default of llama)"));
  EXPECT_TRUE(fixture("gpt2.json").spec.model.tied);
}

TEST_F(Foreign, AConfigOfOursReadsBackToTheSame) {
  for (const auto& entry : std::filesystem::directory_iterator(RIDGELINE_SOURCE_DIR "/tests/spec/fixtures")) {
    const ForeignConfig config = read_foreign_config(entry.path());
    const std::string path = folder_ + "/config.toml";
    std::ofstream(path) << short_toml(config.spec);
    EXPECT_EQ(to_toml(load_train_spec(path).spec), to_toml(config.spec)) << entry.path();
  }
}

const std::string kShape =
    R"("hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100, "intermediate_size": 96)";

TEST_F(Foreign, RotationAndWindowsAreRead) {
  const auto of = [&](const std::string& more) {
    const std::string path = folder_ + "/rotary.json";
    std::ofstream(path) << "{" + kShape + R"(, "num_key_value_heads": 2, "max_position_embeddings": 64, )" + more + "}";
    return read_foreign_config(path);
  };
  // As transformers 4 writes it, and transformers 5.
  const std::string llama3 = R"("rope_type": "llama3", "factor": 8.0, "low_freq_factor": 2.0, "high_freq_factor": 5.0,
                                "original_max_position_embeddings": 32)";
  for (const std::string& text : {R"("rope_theta": 5e5, "rope_scaling": {)" + llama3 + "}",
                                  R"("rope_parameters": {"rope_theta": 5e5, )" + llama3 + "}"}) {
    const RotarySpec rotary = of(R"("model_type": "llama", )" + text).spec.model.rotary;
    EXPECT_EQ(rotary.scaling, RotaryScaling::llama3);
    EXPECT_EQ(rotary.base, 5e5);
    EXPECT_EQ(rotary.factor, 8);
    EXPECT_EQ(rotary.low_frequency, 2);
    EXPECT_EQ(rotary.high_frequency, 5);
    EXPECT_EQ(rotary.original_sequence, 32);
  }
  const RotarySpec yarn =
      of(R"("model_type": "qwen2", "rope_theta": 1e6, "rope_scaling": {"type": "yarn", "factor": 4.0})").spec.model.rotary;
  EXPECT_EQ(yarn.scaling, RotaryScaling::yarn);
  EXPECT_EQ(yarn.original_sequence, 64);
  const ForeignConfig dynamic = of(R"("model_type": "llama", "rope_scaling": {"type": "dynamic", "factor": 2.0})");
  EXPECT_EQ(dynamic.spec.model.rotary.scaling, RotaryScaling::none);
  EXPECT_EQ(meaning(dynamic.beyond, "/rope_scaling/type"), "turns positions in a way of its own; no size or work changes");
  EXPECT_EQ(of(R"("model_type": "mistral")").spec.model.sliding_window, 4096);
  EXPECT_EQ(of(R"("model_type": "mistral", "sliding_window": null)").spec.model.sliding_window, 0);
  EXPECT_EQ(of(R"("model_type": "mistral", "sliding_window": 16)").spec.model.sliding_window, 16);
  const std::string window = R"(, "use_sliding_window": true, "sliding_window": 16, "max_window_layers": )";
  EXPECT_EQ(of(R"("model_type": "qwen2")" + window + "0").spec.model.sliding_window, 16);
  EXPECT_EQ(of(R"("model_type": "qwen2")" + window + "1").beyond.size(), 1u);
  EXPECT_EQ(of(R"("model_type": "qwen2", "use_sliding_window": false, "sliding_window": 16)").spec.model.sliding_window, 0);
}

TEST_F(Foreign, WhatAModelSpecCannotSayIsRefused) {
  const auto of = [&](const std::string& more) { return error("c.json", "{" + kShape + ", " + more + "}"); };
  EXPECT_EQ(of(R"("model_type": "llama", "max_position_embeddings": 128)"), "no error");
  EXPECT_THAT(of(R"("model_type": "lama")"),
              HasSubstr("c.json: /model_type = lama: expected one of gpt2, llama, mistral, "
                        "mixtral, qwen2, qwen3, qwen3_moe; did you mean 'llama'?"));
  EXPECT_THAT(of(R"("model_type": "llama", "hidden_act": "gelu")"), HasSubstr("/hidden_act = gelu: expected \"silu\""));
  EXPECT_THAT(of(R"("model_type": "llama", "mlp_bias": true)"), HasSubstr("/mlp_bias = true: expected false"));
  EXPECT_THAT(of(R"("model_type": "qwen3_moe", "moe_intermediate_size": 8, "decoder_sparse_step": 2)"),
              HasSubstr("/decoder_sparse_step = 2: expected an integer 1 to 1"));
  EXPECT_THAT(of(R"("model_type": "qwen3_moe", "moe_intermediate_size": 8, "mlp_only_layers": [0])"),
              HasSubstr("/mlp_only_layers = [0]: expected an empty list"));
}

TEST_F(Foreign, HostileJsonIsRefusedWithItsPointer) {
  const auto of = [&](const std::string& text) { return error("c.json", text); };
  EXPECT_THAT(of(R"({"model_type": "llama"})"), HasSubstr("c.json: /num_hidden_layers is missing: the model's shape"));
  EXPECT_THAT(of(R"({"model_type": "llama", "num_hidden_layers": "many"})"),
              HasSubstr("c.json: /num_hidden_layers = many: expected an integer 1 to"));
  EXPECT_THAT(of(R"({"model_type": "llama", "num_hidden_layers": 1e300})"), HasSubstr("expected an integer"));
  EXPECT_THAT(of(R"({"model_type": "llama", "num_hidden_layers": 18446744073709551615})"),
              HasSubstr("expected an integer"));
  EXPECT_THAT(of(R"({"model_type": "llama", "num_hidden_layers": -1})"), HasSubstr("expected an integer 1 to"));
  EXPECT_THAT(of(R"({"model_type": 5})"), HasSubstr("/model_type = 5: expected a string"));
  EXPECT_THAT(of(R"({"a": 1, "a": 2})"), HasSubstr("the key \"a\" stands there twice"));
  EXPECT_THAT(of(R"({"a": )"), HasSubstr("c.json: not valid JSON"));
  EXPECT_THAT(of("{\"a\": " + std::string(100'000, '[')), HasSubstr("nests deeper than 32 levels"));
  EXPECT_THAT(of("[1]"), HasSubstr("expected a JSON object at its top"));
  EXPECT_THAT(of("{}"), HasSubstr("neither \"model_type\""));
  EXPECT_THAT(of("{\"model_type\": \"" + std::string(2'000'000, 'x') + "\"}"), HasSubstr("larger than 1 MiB"));
  EXPECT_THAT(of(""), HasSubstr("is empty"));
  // What the config's own bounds refuse names the foreign key.
  EXPECT_THAT(of(R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2000000, "num_attention_heads": 4,
                     "vocab_size": 9, "intermediate_size": 96, "max_position_embeddings": 128})"),
              HasSubstr("c.json: /num_hidden_layers: "));
  EXPECT_THAT(of(R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
                     "num_key_value_heads": 3, "vocab_size": 9, "intermediate_size": 96, "max_position_embeddings": 128})"),
              HasSubstr("c.json: /num_key_value_heads: model.kv_heads = 3: expected 0 or a divisor"));
}

TEST_F(Foreign, FormatsAreFoundOut) {
  EXPECT_THAT(error("x.txt", "hello"), HasSubstr("neither its name nor its first characters tell what it is"));
  EXPECT_THAT(error("x.toml", "[strategy]\ntensor = 2\n"), HasSubstr("this is a config of Ridgeline already"));
  EXPECT_THAT(error("x.toml", "[other]\n"), HasSubstr("no table of torchtitan"));
  EXPECT_THAT(error("x.yaml", "a: 1\n"), HasSubstr("no key of nanotron"));
  EXPECT_THAT(error("x.json", "{}", "hugging"), HasSubstr("no such format"));
  EXPECT_THAT(error("x.json", "{\"bf16\": {\"enabled\": true}}", "deepspeed"), "no error");
}

}  // namespace
}  // namespace ridgeline::spec
