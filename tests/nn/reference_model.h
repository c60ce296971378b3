// The GPT family in plain differentiable operations, for libtorch's autograd to differentiate: what the explicit backwards
// of src/nn are tested against.
#pragma once

#include <ATen/ATen.h>

#include <map>
#include <string>

#include "spec/model.h"

namespace ridgeline::nn {

using NamedTensors = std::map<std::string, at::Tensor>;  // by the names of spec/parameters.h

inline at::Tensor reference_norm(const NamedTensors& p, const std::string& name, const at::Tensor& x, double epsilon) {
  return at::layer_norm(x, {x.size(-1)}, p.at(name + ".weight"), p.at(name + ".bias"), epsilon);
}

// Sum of token losses; tokens and targets [samples, sequence].
inline at::Tensor reference_loss(const NamedTensors& p, const spec::ModelSpec& model, const at::Tensor& tokens,
                                 const at::Tensor& targets) {
  const int64_t samples = tokens.size(0), sequence = tokens.size(1), hidden = model.hidden;
  at::Tensor x = at::embedding(p.at("embedding.token.weight"), tokens) +
                 p.at("embedding.position.weight").narrow(0, 0, sequence);
  const at::Tensor future = at::ones({sequence, sequence}, at::kBool).triu(1);
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    const std::string prefix = "layers." + std::to_string(layer) + ".";
    const at::Tensor a = reference_norm(p, prefix + "attention_norm", x, model.norm_epsilon);
    const at::Tensor qkv = at::linear(a, p.at(prefix + "attention.qkv.weight").view({3 * hidden, hidden}),
                                      p.at(prefix + "attention.qkv.bias").view({3 * hidden}));
    const at::Tensor heads = qkv.view({samples, sequence, 3, model.heads, model.head_size()}).permute({2, 0, 3, 1, 4});
    const at::Tensor scores = at::matmul(heads[0], heads[1].transpose(-1, -2)) / std::sqrt(double(model.head_size()));
    const at::Tensor weights = at::softmax(scores.masked_fill(future, -1e30), -1);
    const at::Tensor context = at::matmul(weights, heads[2]).transpose(1, 2).reshape({samples, sequence, hidden});
    x = x + at::linear(context, p.at(prefix + "attention.output.weight"), p.at(prefix + "attention.output.bias"));
    const at::Tensor b = reference_norm(p, prefix + "mlp_norm", x, model.norm_epsilon);
    const at::Tensor up = at::gelu(at::linear(b, p.at(prefix + "mlp.up.weight"), p.at(prefix + "mlp.up.bias")), "tanh");
    x = x + at::linear(up, p.at(prefix + "mlp.down.weight"), p.at(prefix + "mlp.down.bias"));
  }
  const at::Tensor rows = reference_norm(p, "final_norm", x, model.norm_epsilon).view({-1, hidden});
  const at::Tensor logits = at::linear(rows, p.at(model.tied ? "embedding.token.weight" : "head.weight"));
  return at::cross_entropy_loss(logits, targets.view({-1}), {}, at::Reduction::Sum);
}

}  // namespace ridgeline::nn
