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

// Which picks [rows, k] their experts take: those first in each sample, up to the capacity.
inline at::Tensor reference_taken(const spec::ModelSpec& model, const at::Tensor& picked) {
  at::Tensor taken = at::ones(picked.sizes(), at::kDouble);
  std::map<int64_t, int64_t> used;
  for (int64_t row = 0; row < picked.size(0); ++row) {
    if (row % model.sequence == 0) used.clear();
    for (int64_t pick = 0; pick < picked.size(1); ++pick) {
      if (++used[picked[row][pick].item<int64_t>()] > model.expert_capacity()) taken[row][pick].fill_(0);
    }
  }
  return taken;
}

// A loop over experts, each of which sees all tokens; what the router adds to the loss goes to `auxiliary`.
inline at::Tensor reference_experts(const NamedTensors& p, const spec::ModelSpec& model, const std::string& prefix,
                                    const at::Tensor& input, at::Tensor& auxiliary) {
  const at::Tensor x = input.reshape({-1, model.hidden});
  const at::Tensor logits = at::linear(x, p.at(prefix + "router.weight"));
  const at::Tensor probabilities = at::softmax(logits, 1);
  const auto balance = p.find(prefix + "router.balance");
  const at::Tensor scores = balance == p.end() ? probabilities : probabilities + balance->second;
  const at::Tensor picked = std::get<1>(at::topk(scores.detach(), model.experts_per_token, 1));
  at::Tensor weights = probabilities.gather(1, picked);
  if (model.router_normalize) weights = weights / weights.sum(1, true);
  if (model.capacity_factor > 0) weights = weights * reference_taken(model, picked);
  at::Tensor output = at::zeros_like(x);
  for (int64_t expert = 0; expert < model.experts; ++expert) {
    NamedTensors one;
    for (const char* name : {"gate", "up", "down"}) {
      one[std::string(name) + ".weight"] = p.at(prefix + "experts." + name + ".weight")[expert];
    }
    const at::Tensor weight = (weights * picked.eq(expert)).sum(1, true);
    output = output + weight * reference_mlp(one, model, "", x);
  }
  if (model.shared_ffn_hidden > 0) output = output + reference_mlp(p, model, prefix + "shared.", x);
  const double layers = static_cast<double>(model.layers), sequence = static_cast<double>(model.sequence);
  for (int64_t sample = 0; sample < x.size(0) / model.sequence; ++sample) {
    const auto of_sample = [&](const at::Tensor& of) { return of.narrow(0, sample * model.sequence, model.sequence); };
    for (int64_t expert = 0; expert < model.experts; ++expert) {
      const double part = of_sample(picked).eq(expert).sum().item<double>() / sequence;
      const at::Tensor mean = of_sample(probabilities).select(1, expert).mean();
      auxiliary = auxiliary + mean * (model.router_auxiliary_loss / layers * sequence * double(model.experts) * part);
    }
  }
  auxiliary = auxiliary + at::logsumexp(logits, 1).square().sum() * (model.router_z_loss / layers);
  return output.view_as(input);
}

// Sum of token losses; tokens and targets [samples, sequence].
inline at::Tensor reference_loss(const NamedTensors& p, const spec::ModelSpec& model, const at::Tensor& tokens,
                                 const at::Tensor& targets, at::Tensor* auxiliary = nullptr) {
  at::Tensor routers = at::zeros({}, at::kDouble);
  at::Tensor x = at::embedding(p.at("embedding.token.weight"), tokens);
  if (model.positions == spec::Positions::learned) {
    x = x + p.at("embedding.position.weight").narrow(0, 0, tokens.size(1));
  }
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    const std::string prefix = "layers." + std::to_string(layer) + ".";
    x = x + reference_attention(p, model, prefix + "attention.", reference_norm(p, model, prefix + "attention_norm", x));
    const at::Tensor normed = reference_norm(p, model, prefix + "mlp_norm", x);
    x = x + (model.experts > 0 ? reference_experts(p, model, prefix + "mlp.", normed, routers)
                               : reference_mlp(p, model, prefix + "mlp.", normed));
  }
  if (auxiliary != nullptr) *auxiliary = routers;
  const at::Tensor rows = reference_norm(p, model, "final_norm", x).view({-1, model.hidden});
  const at::Tensor logits = at::linear(rows, p.at(model.tied ? "embedding.token.weight" : "head.weight"));
  return at::cross_entropy_loss(logits, targets.view({-1}), {}, at::Reduction::Sum);
}

}  // namespace ridgeline::nn
