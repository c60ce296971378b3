// The named models. Shapes are those of the papers and of the published configurations; the tests hold the parameter
// counts of the published weights against them.
#include <array>

#include "core/error.h"
#include "core/text.h"
#include "spec/model.h"

namespace ridgeline::spec {
namespace {

struct Preset {
  const char* name;
  ModelSpec model;
};

constexpr ModelSpec gpt(int64_t layers, int64_t hidden, int64_t heads, int64_t vocabulary, int64_t sequence) {
  return {.layers = layers, .hidden = hidden, .heads = heads, .vocabulary = vocabulary, .sequence = sequence};
}

constexpr ModelSpec llama(int64_t layers, int64_t hidden, int64_t heads, int64_t kv_heads, int64_t ffn_hidden,
                          int64_t vocabulary, int64_t sequence) {
  return {.layers = layers,
          .hidden = hidden,
          .heads = heads,
          .kv_heads = kv_heads,
          .ffn_hidden = ffn_hidden,
          .vocabulary = vocabulary,
          .sequence = sequence,
          .tied = false,
          .norm = Norm::rms_norm,
          .positions = Positions::rotary,
          .biases = Biases::none,
          .gated_mlp = true};
}

constexpr ModelSpec llama3(int64_t layers, int64_t hidden, int64_t heads, int64_t ffn_hidden) {
  ModelSpec model = llama(layers, hidden, heads, 8, ffn_hidden, 128256, 8192);
  model.rotary.base = 500'000;
  return model;
}

constexpr ModelSpec mistral_7b() {
  ModelSpec model = llama(32, 4096, 32, 8, 14336, 32000, 8192);
  model.sliding_window = 4096;
  return model;
}

constexpr ModelSpec mixtral_8x7b() {
  ModelSpec model = llama(32, 4096, 32, 8, 14336, 32000, 32768);
  model.rotary.base = 1e6;
  model.experts = 8;
  model.experts_per_token = 2;
  model.router_auxiliary_loss = 0.02;
  return model;
}

constexpr ModelSpec qwen2_5_7b() {
  ModelSpec model = llama(28, 3584, 28, 4, 18944, 152064, 4096);
  model.biases = Biases::qkv;
  model.norm_epsilon = 1e-6;
  model.rotary.base = 1e6;
  return model;
}

constexpr ModelSpec qwen3(int64_t layers, int64_t hidden, int64_t heads, int64_t ffn_hidden) {
  ModelSpec model = llama(layers, hidden, heads, 8, ffn_hidden, 151936, 4096);
  model.head_width = 128;
  model.qk_norm = true;
  model.norm_epsilon = 1e-6;
  model.rotary.base = 1e6;
  return model;
}

constexpr ModelSpec qwen3_moe(int64_t layers, int64_t hidden, int64_t heads, int64_t kv_heads, int64_t ffn_hidden,
                              int64_t expert_ffn_hidden) {
  ModelSpec model = qwen3(layers, hidden, heads, ffn_hidden);
  model.kv_heads = kv_heads;
  model.experts = 128;
  model.experts_per_token = 8;
  model.expert_ffn_hidden = expert_ffn_hidden;
  model.router_auxiliary_loss = 0.001;
  return model;
}

constexpr ModelSpec tied(ModelSpec model) {
  model.tied = true;
  return model;
}

// The family of `model` at a size that a laptop trains in minutes, on bytes.
constexpr ModelSpec tiny(ModelSpec model) {
  model.layers = 4;
  model.hidden = 128;
  model.heads = 4;
  model.kv_heads = 2;
  model.head_width = 0;
  model.ffn_hidden = 352;
  model.vocabulary = 257;
  model.sequence = 128;
  if (model.sliding_window > 0) model.sliding_window = 64;
  if (model.experts > 0) model.experts = 8;
  if (model.experts > 0) model.experts_per_token = 2;
  if (model.expert_ffn_hidden > 0) model.expert_ffn_hidden = 88;
  return model;
}

// gpt2-*: Radford et al. 2019, table 2. gpt-1.3b: GPT-3 XL (Brown et al. 2020, table 2.1) with the 16 heads of size 128
// that its hidden size holds. gpt-22b, -175b, -1t: the models of Dash et al. (arXiv 2312.12705), the last one with the
// 200 heads of the authors' later scripts. Published dropout differs from run to run, so presets leave it at 0.
// llama2-7b: arXiv 2307.09288. llama3-*: arXiv 2407.21783, table 3; mistral-7b: arXiv 2310.06825, table 1;
// mixtral-8x7b: arXiv 2401.04088, table 1; qwen2.5-7b: arXiv 2412.15115; qwen3-*: arXiv 2505.09388, table 1. Their sequences are those of most of pre-training, not of later extensions.
constexpr std::array kPresets = {
    Preset{"gpt-tiny", gpt(4, 128, 4, 257, 128)},
    Preset{"gpt2-124m", gpt(12, 768, 12, 50257, 1024)},
    Preset{"gpt2-350m", gpt(24, 1024, 16, 50257, 1024)},
    Preset{"gpt-1.3b", gpt(24, 2048, 16, 50257, 2048)},
    Preset{"gpt-22b", gpt(48, 6144, 48, 50257, 2048)},
    Preset{"gpt-175b", gpt(96, 12288, 96, 50257, 2048)},
    Preset{"gpt-1t", gpt(128, 25600, 200, 50257, 2048)},
    Preset{"llama2-7b", llama(32, 4096, 32, 0, 11008, 32000, 4096)},
    Preset{"llama3-8b", llama3(32, 4096, 32, 14336)},
    Preset{"llama3-70b", llama3(80, 8192, 64, 28672)},
    Preset{"llama3-405b", llama3(126, 16384, 128, 53248)},
    Preset{"mistral-7b", mistral_7b()},
    Preset{"mixtral-8x7b", mixtral_8x7b()},
    Preset{"qwen2.5-7b", qwen2_5_7b()},
    Preset{"qwen3-0.6b", tied(qwen3(28, 1024, 16, 3072))},
    Preset{"qwen3-4b", tied(qwen3(36, 2560, 32, 9728))},
    Preset{"qwen3-8b", qwen3(36, 4096, 32, 12288)},
    Preset{"qwen3-32b", qwen3(64, 5120, 64, 25600)},
    Preset{"qwen3-30b-a3b", qwen3_moe(48, 2048, 32, 4, 6144, 768)},
    Preset{"qwen3-235b-a22b", qwen3_moe(94, 4096, 64, 4, 12288, 1536)},
    Preset{"llama-tiny", tiny(llama3(32, 4096, 32, 14336))},
    Preset{"mistral-tiny", tiny(mistral_7b())},
    Preset{"mixtral-tiny", tiny(mixtral_8x7b())},
    Preset{"qwen2.5-tiny", tiny(qwen2_5_7b())},
    Preset{"qwen3-tiny", tiny(qwen3(36, 4096, 32, 12288))},
    Preset{"qwen3-moe-tiny", tiny(qwen3_moe(48, 2048, 32, 4, 6144, 768))},
};

}  // namespace

ModelSpec model_preset(const std::string& name) {
  for (const Preset& preset : kPresets) {
    if (name == preset.name) return preset.model;
  }
  const auto names = model_preset_names();
  throw InputError("model.preset = '{}': no such model{} (the presets are {})", name, did_you_mean(name, names),
                   join(names));
}

std::vector<std::string> model_preset_names() {
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) names.push_back(preset.name);
  return names;
}

}  // namespace ridgeline::spec
