// The model families in plain differentiable operations, for libtorch's autograd to differentiate: what the explicit
// backwards of src/nn are tested against.
#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <map>
#include <string>

#include "spec/model.h"

namespace ridgeline::nn {

using NamedTensors = std::map<std::string, at::Tensor>;  // by the names of spec/parameters.h

inline at::Tensor reference_rms(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  return x * at::rsqrt(x.square().mean(-1, true) + epsilon) * weight;
}

inline at::Tensor reference_norm(const NamedTensors& p, const spec::ModelSpec& model, const std::string& name,
                                 const at::Tensor& x) {
  const at::Tensor& weight = p.at(name + ".weight");
  if (model.norm == spec::Norm::rms_norm) return reference_rms(x, weight, model.norm_epsilon);
  return at::layer_norm(x, {x.size(-1)}, weight, p.at(name + ".bias"), model.norm_epsilon);
}

// Of matrices with any number of leading dims, and a bias where there is one.
inline at::Tensor reference_linear(const NamedTensors& p, const std::string& name, const at::Tensor& x) {
  const at::Tensor weight = p.at(name + ".weight").flatten(0, -2);
  const auto bias = p.find(name + ".bias");
  return bias == p.end() ? at::linear(x, weight) : at::linear(x, weight, bias->second.flatten());
}

// x [samples, heads, sequence, size]: pairs (i, i + size / 2) turned by position * base^(-2 i / size), as complex numbers.
inline at::Tensor reference_rotation(const spec::ModelSpec& model, const at::Tensor& x) {
  const int64_t sequence = x.size(2), half = x.size(3) / 2;
  const at::Tensor frequencies = at::tensor(spec::rotary_frequencies(model.rotary, 2 * half), at::kDouble);
  const at::Tensor angles = at::outer(at::arange(sequence, at::kDouble), frequencies);
  const at::Tensor turned = at::complex(x.narrow(3, 0, half), x.narrow(3, half, half)) *
                            at::polar(at::full_like(angles, spec::rotary_attention_factor(model.rotary)), angles);
  return at::cat({at::real(turned), at::imag(turned)}, -1);
}

inline at::Tensor reference_attention(const NamedTensors& p, const spec::ModelSpec& model, const std::string& prefix,
                                      const at::Tensor& x) {
  const int64_t samples = x.size(0), sequence = x.size(1);
  std::vector<at::Tensor> parts;
  if (model.fused_qkv()) {
    parts = reference_linear(p, prefix + "qkv", x).chunk(3, -1);
  } else {
    for (const char* name : {"query", "key", "value"}) parts.push_back(reference_linear(p, prefix + name, x));
  }
  for (at::Tensor& part : parts) part = part.reshape({samples, sequence, -1, model.head_size()}).transpose(1, 2);
  if (model.qk_norm) {
    parts[0] = reference_rms(parts[0], p.at(prefix + "query_norm.weight"), model.norm_epsilon);
    parts[1] = reference_rms(parts[1], p.at(prefix + "key_norm.weight"), model.norm_epsilon);
  }
  if (model.positions == spec::Positions::rotary) {
    for (int i : {0, 1}) parts[i] = reference_rotation(model, parts[i]);
  }
  for (int i : {1, 2}) parts[i] = parts[i].repeat_interleave(model.heads / model.key_heads(), 1);
  const at::Tensor distance =
      at::arange(sequence, at::kLong).unsqueeze(1) - at::arange(sequence, at::kLong).unsqueeze(0);
  at::Tensor unseen = distance.lt(0);
  if (model.sliding_window > 0) unseen = unseen.logical_or(distance.ge(model.sliding_window));
  const at::Tensor scores = at::matmul(parts[0], parts[1].transpose(-1, -2)) / std::sqrt(double(model.head_size()));
  const at::Tensor context = at::matmul(at::softmax(scores.masked_fill(unseen, -1e30), -1), parts[2]);
  return reference_linear(p, prefix + "output", context.transpose(1, 2).reshape({samples, sequence, -1}));
}

inline at::Tensor reference_mlp(const NamedTensors& p, const spec::ModelSpec& model, const std::string& prefix,
                                const at::Tensor& x) {
  const at::Tensor up = reference_linear(p, prefix + "up", x);
  const at::Tensor inner =
      model.gated_mlp ? at::silu(reference_linear(p, prefix + "gate", x)) * up : at::gelu(up, "tanh");
  return reference_linear(p, prefix + "down", inner);
}

// Sum of token losses; tokens and targets [samples, sequence].
inline at::Tensor reference_loss(const NamedTensors& p, const spec::ModelSpec& model, const at::Tensor& tokens,
                                 const at::Tensor& targets) {
  at::Tensor x = at::embedding(p.at("embedding.token.weight"), tokens);
  if (model.positions == spec::Positions::learned) {
    x = x + p.at("embedding.position.weight").narrow(0, 0, tokens.size(1));
  }
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    const std::string prefix = "layers." + std::to_string(layer) + ".";
    x = x + reference_attention(p, model, prefix + "attention.", reference_norm(p, model, prefix + "attention_norm", x));
    x = x + reference_mlp(p, model, prefix + "mlp.", reference_norm(p, model, prefix + "mlp_norm", x));
  }
  const at::Tensor rows = reference_norm(p, model, "final_norm", x).view({-1, model.hidden});
  const at::Tensor logits = at::linear(rows, p.at(model.tied ? "embedding.token.weight" : "head.weight"));
  return at::cross_entropy_loss(logits, targets.view({-1}), {}, at::Reduction::Sum);
}

}  // namespace ridgeline::nn
