// Decoder: the model's forward pass for one text that grows token by token, with the keys and values of earlier tokens
// kept instead of computed again.
//
//   Decoder decoder(context, parameters);
//   at::Tensor logits = decoder.append(prompt);       // of the token that follows the prompt
//   logits = decoder.append({&next, 1});              // of the one after that
//
// A token costs one pass over the weights and 2 * layers * hidden * length multiplications of attention. The cache
// holds 2 * layers * hidden * model.sequence elements. The learned positions bind a key to its place in the window: a
// window that slides must be cleared and computed again (see train/generate.h for how seldom that is).
//
// One rank must hold the whole model: a tensor axis of size one, and all units. Values agree with Stage::logits to
// rounding.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nn/context.h"
#include "nn/flat_parameters.h"

namespace ridgeline::nn {

class Decoder {
 public:
  // `context` and `parameters` must outlive the decoder.
  Decoder(const Context& context, const FlatParameters& parameters);

  // Appends tokens and returns the logits [vocabulary] of the next one. All tokens must fit: length() + tokens.size()
  // <= room. More than one token may be appended to an empty decoder only.
  at::Tensor append(std::span<const int64_t> tokens);

  int64_t length() const { return length_; }
  int64_t room() const { return context_.model.sequence; }
  void clear() { length_ = 0; }

 private:
  struct Layer {
    at::Tensor attention_norm_weight, attention_norm_bias, qkv_weight, qkv_bias, output_weight, output_bias;
    at::Tensor mlp_norm_weight, mlp_norm_bias, up_weight, up_bias, down_weight, down_bias;
    at::Tensor keys, values;  // [1, heads, room, head size]
  };

  at::Tensor weight(const std::string& name) const { return parameters_.parameter(name).value; }
  Layer make_layer(int64_t number) const;
  at::Tensor attention(Layer& layer, const at::Tensor& input) const;
  at::Tensor mlp(const Layer& layer, const at::Tensor& input) const;

  const Context& context_;
  const FlatParameters& parameters_;
  at::Tensor token_weight_, position_weight_, norm_weight_, norm_bias_, head_weight_;
  std::vector<Layer> layers_;
  int64_t length_ = 0;
};

}  // namespace ridgeline::nn
