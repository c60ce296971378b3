// The model families by name, for tests of every room: what tells them apart, on a shape that the caller gives. Between
// them they have every piece that the trainer runs, alone and together.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "spec/model.h"

namespace ridgeline::spec {

inline const std::vector<std::string>& family_names() {
  static const std::vector<std::string> names = {"gpt",   "gpt_untied", "llama",       "llama3", "mistral",
                                                 "qwen2", "qwen3",      "qwen3_fused", "biased"};
  return names;
}

// Those with experts: picked ones alone, as they are and with a loss for even use, and with all else that routers have.
inline const std::vector<std::string>& expert_family_names() {
  static const std::vector<std::string> names = {"mixtral", "qwen3_moe", "shared_experts"};
  return names;
}

inline ModelSpec with_experts(ModelSpec model, const std::string& name) {
  model.experts = 4;
  model.experts_per_token = 2;
  model.ffn_hidden = 2 * model.hidden;
  if (name == "mixtral") return model;
  model.expert_ffn_hidden = model.hidden;
  model.router_auxiliary_loss = 0.5;
  model.router_z_loss = 0.1;
  if (name == "qwen3_moe") {
    model.qk_norm = true;
    model.router_normalize = false;
    return model;
  }
  model.shared_ffn_hidden = 2 * model.hidden;
  model.router_bias_rate = 0.01;
  model.capacity_factor = 1.25;
  return model;
}

// `model` with the keys of the family. Its heads must divide by 2.
inline ModelSpec as_family(ModelSpec model, const std::string& name) {
  model.tied = name == "gpt" || name == "qwen2" || name == "qwen3";
  if (name.starts_with("gpt")) return model;
  model.norm = Norm::rms_norm;
  model.positions = Positions::rotary;
  model.gated_mlp = true;
  model.biases = Biases::none;
  model.rotary.base = 100;  // so that all pairs turn within a short sequence
  if (name == "llama" || name == "qwen3_fused") {  // as many key heads as heads: one product of three
    model.qk_norm = name == "qwen3_fused";
    return model;
  }
  model.kv_heads = model.heads / 2;
  if (name == "llama3") {
    model.rotary.scaling = RotaryScaling::llama3;
    model.rotary.factor = 4;
    model.rotary.original_sequence = 8;
  } else if (name == "mistral") {
    model.sliding_window = 5;
  } else if (name == "qwen2") {
    model.biases = Biases::qkv;
  } else if (name == "qwen3") {
    model.qk_norm = true;
    model.head_width = model.head_size() + 4;  // wider together than the residual stream
  } else if (name == "biased") {
    model.biases = Biases::all;
    model.rotary.scaling = RotaryScaling::yarn;
    model.rotary.factor = 4;
    model.rotary.original_sequence = 8;
  } else if (name == "mixtral" || name == "qwen3_moe" || name == "shared_experts") {
    return with_experts(model, name);
  } else {
    throw std::invalid_argument("no family " + name);
  }
  return model;
}

}  // namespace ridgeline::spec
