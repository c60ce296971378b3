// DeepSpeed, torchtitan and nanotron.
#include <gmock/gmock.h>

#include "spec/foreign_fixture.h"

namespace ridgeline::spec {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::SizeIs;

TEST_F(Foreign, DeepSpeedBatchesGiveTheDataAxis) {
  const ForeignConfig config = fixture("deepspeed.json");
  EXPECT_FALSE(config.has_model);
  EXPECT_EQ(config.spec.strategy.global_batch, 512);
  EXPECT_EQ(config.spec.strategy.micro_batch, 4);
  EXPECT_EQ(config.devices, 16);
  EXPECT_EQ(config.spec.precision.compute, Precision::bf16);
  EXPECT_EQ(config.spec.optimizer.beta2, 0.95);
  EXPECT_EQ(config.spec.optimizer.decay, DecayKind::linear);
  EXPECT_EQ(config.spec.optimizer.warmup_steps, 2000);
  EXPECT_DOUBLE_EQ(config.spec.strategy.bucket_mib, 5e8 * 4 / 1048576);
  EXPECT_EQ(config.spec.strategy.zero_stage, 2);
  EXPECT_EQ(meaning(config.understood, "/zero_optimization/stage"), "strategy.zero_stage = 2");
  EXPECT_TRUE(config.spec.strategy.offload_optimizer);
}

TEST_F(Foreign, DeepSpeedAutoIsNoGuess) {
  const ForeignConfig config = fixture("deepspeed-auto.json");
  EXPECT_EQ(config.spec.strategy.micro_batch, Strategy().micro_batch);
  EXPECT_EQ(config.spec.optimizer.lr, OptimizerSpec().lr);
  EXPECT_EQ(meaning(config.ignored, "/optimizer/params/lr"), "left to the program that reads it");
  EXPECT_EQ(meaning(config.ignored, "/optimizer/params/betas"), "left to the program that reads it");
  EXPECT_THAT(config.missing, SizeIs(2));
  EXPECT_EQ(config.spec.precision.initial_loss_scale, 65536);
}

TEST_F(Foreign, DeepSpeedErrorsNameThePointer) {
  EXPECT_THAT(error("d.json", R"({"train_batch_size": 100, "train_micro_batch_size_per_gpu": 8,
                                  "gradient_accumulation_steps": 3})"),
              HasSubstr("d.json: /train_batch_size = 100: expected a multiple of train_micro_batch_size_per_gpu * "
                        "gradient_accumulation_steps = 24"));
  EXPECT_THAT(error("d.json", R"({"zero_optimization": {"stage": 7}})"), HasSubstr("/zero_optimization/stage = 7"));
  EXPECT_THAT(error("d.json", R"({"train_batch_size": 1.5})"),
              HasSubstr("/train_batch_size = 1.5: expected an integer"));
  EXPECT_THAT(error("d.json", R"({"train_batch_size": 8, "optimizer": {"params": {"betas": [0.9]}}})"),
              HasSubstr("/optimizer/params/betas = [0.9]: expected a list of 2 numbers"));
  EXPECT_THAT(error("d.json", R"({"bf16": {"enabled": "yes"}})"),
              HasSubstr("/bf16/enabled = yes: expected true or false"));
  EXPECT_THAT(error("d.json", R"({"train_batch_size": 1000000000, "train_micro_batch_size_per_gpu": 1,
                                  "gradient_accumulation_steps": 1, "pipeline": {"stages": 1000000},
                                  "tensor_parallel": {"autotp_size": 1000000}})"),
              HasSubstr("multiply to more than"));
}

TEST_F(Foreign, AWarmUpWithoutAnEndHasSteps) {
  const ForeignConfig config = read(
      "d.json", R"({"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 500}}})");
  EXPECT_EQ(config.spec.training.steps, 500);
  EXPECT_THAT(config.missing, Contains(HasSubstr("training.steps")));
}

TEST_F(Foreign, TorchtitanFlavorsArePresets) {
  const ForeignConfig config = fixture("torchtitan.toml");
  EXPECT_EQ(config.spec.model_preset, "llama3-70b");
  EXPECT_EQ(config.spec.model.layers, 80);
  EXPECT_EQ(config.spec.strategy.tensor, 8);
  EXPECT_TRUE(config.spec.strategy.sequence_parallel);
  EXPECT_EQ(config.spec.strategy.pipeline, 4);
  EXPECT_EQ(config.spec.strategy.global_batch, 64);
  EXPECT_EQ(config.spec.strategy.recompute, Recompute::full);
  EXPECT_EQ(config.devices, 256);
  EXPECT_EQ(config.spec.strategy.zero_stage, 3);
  EXPECT_EQ(meaning(config.understood, "parallelism.data_parallel_shard_degree"), "strategy.zero_stage = 3");
  EXPECT_EQ(config.spec.strategy.shard_group, 0);
  EXPECT_THAT(config.ignored.front().where, HasSubstr("torchtitan.toml:"));
}

TEST_F(Foreign, TorchtitanReplicasOfShardsAreHybridSharding) {
  const ForeignConfig config = read("t.toml",
                                    "[training]\nseq_len = 64\n[parallelism]\ndata_parallel_shard_degree = 4\n"
                                    "data_parallel_replicate_degree = 2\n");
  EXPECT_EQ(config.spec.strategy.zero_stage, 3);
  EXPECT_EQ(config.spec.strategy.shard_group, 4);
  EXPECT_EQ(config.devices, 8);
}

TEST_F(Foreign, TorchtitanModelsOfUnknownShapeAreMissing) {
  const ForeignConfig config =
      read("t.toml", "[model]\nname = \"deepseek_v3\"\nflavor = \"671B\"\n[training]\nseq_len = 64\n");
  EXPECT_FALSE(config.has_model);
  EXPECT_THAT(config.missing, Contains(HasSubstr("[model]")));
  EXPECT_THAT(error("t.toml", "[training]\nseq_len = true\n"),
              HasSubstr("t.toml:2: training.seq_len = true: expected an integer"));
  EXPECT_THAT(error("t.toml", "[training\n"), HasSubstr("t.toml:1: not valid TOML"));
  std::string deep = "[parallelism]\nx = ";
  for (int i = 0; i < 60; ++i) deep += "{a = ";
  deep += "1" + std::string(60, '}');
  EXPECT_THAT(error("t.toml", deep), HasSubstr("nest deeper than 32 levels"));
}

TEST_F(Foreign, TorchtitanParametersThatStayGatheredAreZeroTwo) {
  const std::string head = "[training]\nseq_len = 64\n[parallelism]\ndata_parallel_shard_degree = 8\n";
  EXPECT_EQ(read("t.toml", head).spec.strategy.zero_stage, 3);
  const ForeignConfig config = read("t.toml", head + "fsdp_reshard_after_forward = \"never\"\n");
  EXPECT_EQ(config.spec.strategy.zero_stage, 2);
  EXPECT_EQ(meaning(config.understood, "parallelism.fsdp_reshard_after_forward"), "strategy.zero_stage = 2");
}

TEST_F(Foreign, TomlOfOursIsToldFromTorchtitans) {
  const auto is_foreign = [&](const std::string& text) {
    std::ofstream(folder_ + "/x.toml") << text;
    return is_foreign_config(folder_ + "/x.toml");
  };
  EXPECT_TRUE(is_foreign("[training]\nseq_len = 64\n[parallelism]\ntensor_parallel_degree = 2\n"));
  EXPECT_TRUE(is_foreign("[model]\nname = \"llama3\"\nflavor = \"8B\"\n"));
  EXPECT_FALSE(is_foreign("[model]\npreset = \"gpt-22b\"\n[training]\nsteps = 3\n"));
  EXPECT_FALSE(is_foreign("[strategy]\ntensor = 2\n[parallelism]\nx = 1\n"));
  EXPECT_FALSE(is_foreign("[strategy\n"));
  EXPECT_TRUE(is_foreign_config("train.sh"));
}

TEST_F(Foreign, NanotronYaml) {
  const ForeignConfig config = fixture("nanotron.yaml");
  EXPECT_EQ(config.spec.model.layers, 16);
  EXPECT_TRUE(config.spec.model.tied);
  EXPECT_EQ(config.spec.model.init_std, 0.025);
  EXPECT_EQ(config.spec.strategy.tensor, 4);
  EXPECT_TRUE(config.spec.strategy.sequence_parallel);
  EXPECT_EQ(config.spec.strategy.global_batch, 128);
  EXPECT_EQ(config.devices, 32);
  EXPECT_EQ(config.spec.optimizer.decay_steps, 10'000);
  EXPECT_EQ(config.spec.training.seed, 42u);
  EXPECT_TRUE(config.missing.empty());
}

TEST_F(Foreign, HostileYamlIsRefusedWithItsLine) {
  const auto of = [&](const std::string& text) { return error("n.yaml", text); };
  EXPECT_THAT(of("parallelism:\n  tp: two\n"), HasSubstr("n.yaml: model.model_config.num_hidden_layers is missing"));
  EXPECT_THAT(of("model:\n  model_config:\n    num_hidden_layers: [1, 2]\n"),
              HasSubstr("num_hidden_layers is missing"));
  EXPECT_THAT(of("model:\n  model_config:\n    num_hidden_layers: 1.5\n"),
              HasSubstr("n.yaml:3: model.model_config.num_hidden_layers = 1.5: expected an integer"));
  EXPECT_THAT(of("tokens: {a: 1\n"), HasSubstr("not valid YAML"));
  EXPECT_THAT(of("tokens:\n  a: 1\n  a: 2\n"), HasSubstr("n.yaml:3: tokens.a stands there twice"));
  EXPECT_THAT(of("a: &x [1]\nb: *x\n"), HasSubstr("n.yaml:2: aliases (*name) are not read here"));
  EXPECT_THAT(of("- 1\n"), HasSubstr("n.yaml:1: expected a map at its top"));
  EXPECT_THAT(of("a: 1\n---\nb: 2\n"), HasSubstr("a second document"));
  EXPECT_THAT(of("a: " + std::string(100, '[') + std::string(100, ']')),
              HasSubstr("n.yaml:1: YAML nests deeper than 32 levels"));
  EXPECT_THAT(of("a: " + std::string(100'000, '[')), HasSubstr("n.yaml:1: "));
  EXPECT_THAT(of("a: " + std::string(100'000, '{')), HasSubstr("n.yaml:1: "));
  std::string dashes;
  for (int i = 0; i < 50'000; ++i) dashes += "- ";
  EXPECT_THAT(of("a:\n" + dashes), HasSubstr("n.yaml:2: YAML nests deeper"));
  std::string many = "tokens:\n";
  for (int i = 0; i < 20'000; ++i) many += "  k" + std::to_string(i) + ": 1\n";
  EXPECT_THAT(of(many), HasSubstr("20000 settings, expected at most 10000"));
}

}  // namespace
}  // namespace ridgeline::spec
