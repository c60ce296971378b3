// ModelSpec: the shape of a model, as plain data. Knows nothing of tensors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ridgeline::spec {

// The GPT-2/GPT-3 family: learned positions, LayerNorm before attention and MLP, GELU (tanh form), biases.
struct ModelSpec {
  int64_t layers = 4;
  int64_t hidden = 128;
  int64_t heads = 4;
  int64_t ffn_hidden = 0;      // width of the MLP; 0 means 4 * hidden
  int64_t vocabulary = 257;    // any size: shards may be uneven
  int64_t sequence = 128;      // tokens in a sample, and learned positions
  bool tied = true;            // output weight is the token embedding
  double norm_epsilon = 1e-5;
  double init_std = 0.02;      // output projections of attention and MLP: init_std / sqrt(2 * layers)
  double dropout = 0.0;        // embeddings and both residual branches
  double attention_dropout = 0.0;

  int64_t head_size() const { return hidden / heads; }
  int64_t ffn() const { return ffn_hidden > 0 ? ffn_hidden : 4 * hidden; }
};

// The preset called `name`: gpt-tiny, gpt2-124m, gpt2-350m, gpt-1.3b, gpt-22b, gpt-175b, gpt-1t.
// Throws InputError that lists the names (and the nearest one) when there is none.
ModelSpec model_preset(const std::string& name);
std::vector<std::string> model_preset_names();

// Throws InputError where a field is out of range or heads do not divide hidden.
void validate(const ModelSpec& model);

}  // namespace ridgeline::spec
