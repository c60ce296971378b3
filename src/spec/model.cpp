#include "spec/model.h"

#include <array>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace ridgeline::spec {
namespace {

struct Preset {
  const char* name;
  int64_t layers, hidden, heads, vocabulary, sequence;
};

// gpt2-*: Radford et al. 2019, table 2. gpt-1.3b: GPT-3 XL (Brown et al. 2020, table 2.1) with the 16 heads of size 128
// that its hidden size holds. gpt-22b, -175b, -1t: the models of Dash et al. (arXiv 2312.12705), the last one with the
// 200 heads of the authors' later scripts. Published dropout differs from run to run, so presets leave it at 0.
constexpr std::array<Preset, 7> kPresets = {{
    {"gpt-tiny", 4, 128, 4, 257, 128},
    {"gpt2-124m", 12, 768, 12, 50257, 1024},
    {"gpt2-350m", 24, 1024, 16, 50257, 1024},
    {"gpt-1.3b", 24, 2048, 16, 50257, 2048},
    {"gpt-22b", 48, 6144, 48, 50257, 2048},
    {"gpt-175b", 96, 12288, 96, 50257, 2048},
    {"gpt-1t", 128, 25600, 200, 50257, 2048},
}};

void require(bool holds, const char* key, double found, const char* expected) {
  if (!holds) throw InputError("model.{} = {}: expected {}", key, found, expected);
}

}  // namespace

ModelSpec model_preset(const std::string& name) {
  for (const Preset& preset : kPresets) {
    if (name != preset.name) continue;
    ModelSpec model;
    model.layers = preset.layers;
    model.hidden = preset.hidden;
    model.heads = preset.heads;
    model.vocabulary = preset.vocabulary;
    model.sequence = preset.sequence;
    return model;
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

void validate(const ModelSpec& model) {
  // The bounds keep every product of sizes that is computed from a model within 64 bits.
  require(model.layers >= 1 && model.layers <= 100'000, "layers", model.layers, "1 to 100000");
  require(model.hidden >= 1 && model.hidden <= 1'000'000, "hidden", model.hidden, "1 to 1000000");
  require(model.heads >= 1 && model.heads <= model.hidden, "heads", model.heads, "1 to hidden");
  require(model.ffn_hidden >= 0 && model.ffn_hidden <= 10'000'000, "ffn_hidden", model.ffn_hidden, "0 to 10000000");
  require(model.vocabulary >= 2 && model.vocabulary <= 100'000'000, "vocabulary", model.vocabulary, "2 to 100000000");
  require(model.sequence >= 1 && model.sequence <= 100'000'000, "sequence", model.sequence, "1 to 100000000");
  require(model.norm_epsilon >= 0 && model.norm_epsilon <= 1, "norm_epsilon", model.norm_epsilon, "0 to 1");
  require(model.init_std >= 0 && model.init_std <= 10, "init_std", model.init_std, "0 to 10");
  require(model.dropout >= 0 && model.dropout < 1, "dropout", model.dropout, "0 to below 1");
  require(model.attention_dropout >= 0 && model.attention_dropout < 1, "attention_dropout", model.attention_dropout,
          "0 to below 1");
  if (model.hidden % model.heads != 0) {
    throw InputError("model.heads = {}: model.hidden = {} does not divide by it; change one of the two", model.heads,
                     model.hidden);
  }
}

}  // namespace ridgeline::spec
