#include "spec/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>

#include "core/error.h"
#include "source_folder.h"

namespace ridgeline::spec {
namespace {

using testing::HasSubstr;

class Config : public testing::Test {
 protected:
  std::string write(const std::string& text) {
    path_ = testing::TempDir() + "/ridgeline-config-test.toml";
    std::ofstream(path_) << text;
    return path_;
  }
  std::string error(const std::string& text, const std::vector<std::string>& sets = {}) {
    try {
      load_train_spec(write(text), sets);
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  }
  void TearDown() override { std::remove(path_.c_str()); }
  std::string path_;
};

TEST_F(Config, PresetComesFirstWhereverItIsGiven) {
  const TrainSpec spec = load_train_spec(write("[model]\nsequence = 512\n"), {"model.preset=gpt2-124m"}).spec;
  EXPECT_EQ(spec.model_preset, "gpt2-124m");
  EXPECT_EQ(spec.model.hidden, 768);
  EXPECT_EQ(spec.model.sequence, 512);
}

TEST_F(Config, NamesFileAndLineOfRelations) {
  EXPECT_THAT(error("[model]\nhidden = 130\n"), HasSubstr("config-test.toml:2: model.heads = 4: model.hidden = 130"));
  EXPECT_THAT(error("[optimizer]\nmin_lr = 1.0\n"), HasSubstr("config-test.toml:2: optimizer.min_lr = 1: larger than"));
  EXPECT_THAT(error("", {"optimizer.warmup_steps=101"}), HasSubstr("--set: optimizer.warmup_steps = 101: longer"));
  EXPECT_THAT(error("[evaluation]\nevery = 5\n[data]\nvalidation_fraction = 0\n"), HasSubstr("nothing is held out"));
  EXPECT_THAT(error("[strategy]\nglobal_batch = 1000000\n[training]\nsteps = 1000000000000\n"),
              HasSubstr("config-test.toml:4: training.steps = 1000000000000: with 1000000 samples of 128 tokens"));
  EXPECT_THAT(error("[model]\nsequence = 100000000\n", {"evaluation.samples=1000000000000"}),
              HasSubstr("--set: evaluation.samples = 1000000000000"));
  EXPECT_THAT(error("[training]\nrun = ''\n"), HasSubstr("config-test.toml:2: training.run = ''"));
  EXPECT_THAT(error("[model]\npreset = 'gpt2-125m'\n"), HasSubstr("did you mean 'gpt2-124m'?"));
}

TEST_F(Config, MinimumMayExceedARateThatStaysConstant) {
  const auto spec = load_train_spec(write("[optimizer]\ndecay = 'constant'\nlr = 1e-5\n")).spec;
  EXPECT_EQ(spec.optimizer.decay, DecayKind::constant);
}

TEST_F(Config, TomlReadsBackToTheSameRecord) {
  TrainSpec spec;
  spec.model_preset = "gpt-22b";
  spec.model = model_preset("gpt-22b");
  spec.model.sequence = 4096;
  spec.model.dropout = 0.1;
  spec.strategy.tensor = 4;
  spec.strategy.pipeline = 3;
  spec.strategy.stage_layers = {15, 16, 17};
  spec.strategy.schedule = ScheduleKind::gpipe;
  spec.strategy.recompute = Recompute::full;
  spec.precision.compute = Precision::bf16;
  spec.optimizer.decay = DecayKind::warmup_stable_decay;
  spec.optimizer.lr = 1.0 / 3;
  spec.data.path = "a \"b\"\\c";
  spec.training.seed = 0x7fffffffffffffff;
  spec.checkpoint.at_end = false;
  for (const bool with_docs : {false, true}) {
    const TrainSpec read = load_train_spec(write(to_toml(spec, with_docs))).spec;
    EXPECT_EQ(to_toml(read), to_toml(spec));
    EXPECT_EQ(read.optimizer.lr, spec.optimizer.lr);
    EXPECT_EQ(read.training.seed, spec.training.seed);
    EXPECT_EQ(read.strategy.stage_layers, spec.strategy.stage_layers);
  }
}

// A key that nobody bound would be silently lost from saved configs: each field changes the text.
TEST_F(Config, EveryFieldIsWritten) {
  const std::string plain = to_toml(TrainSpec());
  const std::vector<std::function<void(TrainSpec&)>> changes = {
      [](TrainSpec& s) { s.model_preset = "gpt-1t"; },
      [](TrainSpec& s) { s.model_from = "x"; },
      [](TrainSpec& s) { s.model.rotary.base = 5; },
      [](TrainSpec& s) { s.model.rotary.scaling = RotaryScaling::linear; },
      [](TrainSpec& s) { s.model.rotary.factor = 5; },
      [](TrainSpec& s) { s.model.rotary.original_sequence = 5; },
      [](TrainSpec& s) { s.model.rotary.low_frequency = 5; },
      [](TrainSpec& s) { s.model.rotary.high_frequency = 5; },
      [](TrainSpec& s) { s.model.rotary.beta_fast = 5; },
      [](TrainSpec& s) { s.model.rotary.beta_slow = 5; },
      [](TrainSpec& s) { s.model.rotary.attention_factor = 5; },
      [](TrainSpec& s) { s.model.sliding_window = 5; },
      [](TrainSpec& s) { s.data.separate_documents = true; },
      [](TrainSpec& s) { s.model.layers = 5; },
      [](TrainSpec& s) { s.model.hidden = 5; },
      [](TrainSpec& s) { s.model.heads = 5; },
      [](TrainSpec& s) { s.model.ffn_hidden = 5; },
      [](TrainSpec& s) { s.model.vocabulary = 5; },
      [](TrainSpec& s) { s.model.sequence = 5; },
      [](TrainSpec& s) { s.model.tied = false; },
      [](TrainSpec& s) { s.model.kv_heads = 5; },
      [](TrainSpec& s) { s.model.head_width = 5; },
      [](TrainSpec& s) { s.model.norm = Norm::rms_norm; },
      [](TrainSpec& s) { s.model.positions = Positions::rotary; },
      [](TrainSpec& s) { s.model.biases = Biases::attention; },
      [](TrainSpec& s) { s.model.gated_mlp = true; },
      [](TrainSpec& s) { s.model.embedding_norm = true; },
      [](TrainSpec& s) { s.model.qk_norm = true; },
      [](TrainSpec& s) { s.model.experts = 5; },
      [](TrainSpec& s) { s.model.experts_per_token = 5; },
      [](TrainSpec& s) { s.model.expert_ffn_hidden = 5; },
      [](TrainSpec& s) { s.model.shared_ffn_hidden = 5; },
      [](TrainSpec& s) { s.model.router_normalize = false; },
      [](TrainSpec& s) { s.model.router_auxiliary_loss = 0.5; },
      [](TrainSpec& s) { s.model.router_z_loss = 0.5; },
      [](TrainSpec& s) { s.model.router_bias_rate = 0.5; },
      [](TrainSpec& s) { s.model.capacity_factor = 0.5; },
      [](TrainSpec& s) { s.strategy.expert = 5; },
      [](TrainSpec& s) { s.strategy.expert_tensor = 5; },
      [](TrainSpec& s) { s.model.norm_epsilon = 0.5; },
      [](TrainSpec& s) { s.model.init_std = 0.5; },
      [](TrainSpec& s) { s.model.dropout = 0.5; },
      [](TrainSpec& s) { s.model.attention_dropout = 0.5; },
      [](TrainSpec& s) { s.strategy.tensor = 5; },
      [](TrainSpec& s) { s.strategy.sequence_parallel = true; },
      [](TrainSpec& s) { s.strategy.context = 5; },
      [](TrainSpec& s) { s.strategy.context_kind = ContextKind::all_to_all; },
      [](TrainSpec& s) { s.strategy.pipeline = 5; },
      [](TrainSpec& s) { s.strategy.schedule = ScheduleKind::gpipe; },
      [](TrainSpec& s) { s.strategy.stage_layers = {5}; },
      [](TrainSpec& s) { s.strategy.schedule_file = "x"; },
      [](TrainSpec& s) { s.strategy.virtual_pipeline = 2; },
      [](TrainSpec& s) { s.strategy.zero_stage = 1; },
      [](TrainSpec& s) { s.strategy.shard_group = 1; },
      [](TrainSpec& s) { s.strategy.offload_optimizer = true; },
      [](TrainSpec& s) { s.strategy.micro_batch = 5; },
      [](TrainSpec& s) { s.strategy.global_batch = 5; },
      [](TrainSpec& s) { s.strategy.recompute = Recompute::selective; },
      [](TrainSpec& s) { s.strategy.bucket_mib = 5; },
      [](TrainSpec& s) { s.precision.compute = Precision::fp16; },
      [](TrainSpec& s) { s.precision.initial_loss_scale = 5; },
      [](TrainSpec& s) { s.precision.loss_scale_window = 5; },
      [](TrainSpec& s) { s.optimizer.lr = 5; },
      [](TrainSpec& s) { s.optimizer.min_lr = 5; },
      [](TrainSpec& s) { s.optimizer.warmup_steps = 5; },
      [](TrainSpec& s) { s.optimizer.decay = DecayKind::linear; },
      [](TrainSpec& s) { s.optimizer.decay_steps = 5; },
      [](TrainSpec& s) { s.optimizer.stable_fraction = 0.5; },
      [](TrainSpec& s) { s.optimizer.beta1 = 0.5; },
      [](TrainSpec& s) { s.optimizer.beta2 = 0.5; },
      [](TrainSpec& s) { s.optimizer.epsilon = 0.5; },
      [](TrainSpec& s) { s.optimizer.weight_decay = 0.5; },
      [](TrainSpec& s) { s.optimizer.clip = 0.5; },
      [](TrainSpec& s) { s.data.path = "x"; },
      [](TrainSpec& s) { s.data.validation_path = "x"; },
      [](TrainSpec& s) { s.data.validation_fraction = 0.5; },
      [](TrainSpec& s) { s.evaluation.every = 5; },
      [](TrainSpec& s) { s.evaluation.samples = 5; },
      [](TrainSpec& s) { s.checkpoint.every = 5; },
      [](TrainSpec& s) { s.checkpoint.keep = 5; },
      [](TrainSpec& s) { s.checkpoint.at_end = false; },
      [](TrainSpec& s) { s.checkpoint.resume = false; },
      [](TrainSpec& s) { s.training.run = "x"; },
      [](TrainSpec& s) { s.training.steps = 5; },
      [](TrainSpec& s) { s.training.seed = 5; },
      [](TrainSpec& s) { s.training.device = "cpu"; },
      [](TrainSpec& s) { s.training.threads = 5; },
      [](TrainSpec& s) { s.training.log_every = 5; },
      [](TrainSpec& s) { s.training.check_replicas = 5; },
      [](TrainSpec& s) { s.training.profile_steps = "5:6"; },
      [](TrainSpec& s) { s.training.communication_timeout = 5; },
  };
  TrainSpec bound;
  Schema schema;
  bind(schema, bound);
  EXPECT_EQ(schema.names().size(), changes.size());
  for (size_t index = 0; index < changes.size(); ++index) {
    TrainSpec spec;
    changes[index](spec);
    EXPECT_NE(to_toml(spec), plain) << "change " << index;
  }
}

TEST(Examples, AreValid) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(RIDGELINE_SOURCE_DIR "/examples")) {
    if (entry.path().extension() != ".toml") continue;
    const std::string name = entry.path().filename().string();
    if (name.starts_with("tune-") || name.starts_with("scale-")) continue;  // studies: tests/study
    ++count;
    EXPECT_NO_THROW(load_train_spec(entry.path().string())) << entry.path();
  }
  EXPECT_GT(count, 0);
}

TEST(Names, AgreeWithTheConfig) {
  for (const auto kind :
       {ScheduleKind::gpipe, ScheduleKind::one_f_one_b, ScheduleKind::zero_bubble, ScheduleKind::zero_bubble_v}) {
    EXPECT_NO_THROW(load_train_spec("", {"strategy.schedule=" + to_string(kind)}));
  }
  for (const auto recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
    EXPECT_EQ(load_train_spec("", {"strategy.recompute=" + to_string(recompute)}).spec.strategy.recompute, recompute);
  }
  for (const auto precision : {Precision::fp32, Precision::bf16, Precision::fp16}) {
    EXPECT_EQ(load_train_spec("", {"precision.compute=" + to_string(precision)}).spec.precision.compute, precision);
  }
  for (const auto kind : {DecayKind::constant, DecayKind::cosine, DecayKind::linear, DecayKind::warmup_stable_decay}) {
    EXPECT_EQ(load_train_spec("", {"optimizer.decay=" + to_string(kind)}).spec.optimizer.decay, kind);
  }
}

}  // namespace
}  // namespace ridgeline::spec
