// Decoder: the model's forward pass for one text that grows token by token, with the keys and values of earlier tokens
// kept instead of computed again.
//
//   Decoder decoder(context, parameters);
//   at::Tensor logits = decoder.append(prompt);       // of the token that follows the prompt
//   logits = decoder.append({&next, 1});              // of the one after that
//
// A token costs one pass over the weights and 2 * layers * hidden * length multiplications of attention. The cache
// holds 2 * layers * key width * model.sequence elements. Positions bind a key to its place in the window: a window that
// slides must be cleared and computed again (see train/generate.h for how seldom that is).
//
// One rank must hold the whole model: a tensor axis of size one, and all units. Values agree with Stage::logits to
// rounding.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "nn/context.h"
#include "nn/flat_parameters.h"
#include "nn/norm.h"
#include "nn/qkv_projection.h"

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
    Norm attention_norm;
    QkvProjection qkv;
    Linear attention_output;
    Norm mlp_norm;
    std::unique_ptr<Branch> mlp;
    at::Tensor mlp_bias;      // undefined where there is none
    at::Tensor keys, values;  // [1, key heads, room, head size]
  };

  Layer make_layer(const FlatParameters& parameters, int64_t number) const;
  at::Tensor attention(Layer& layer, const at::Tensor& input, const at::Tensor& positions) const;
  at::Tensor attend(const Layer& layer, const at::Tensor& query, const AttentionPattern& pattern) const;

  const Context& context_;
  at::Tensor token_weight_;
  at::Tensor position_weight_;  // undefined where positions are rotary
  Norm norm_;
  at::Tensor head_weight_;
  std::optional<Rotary> rotary_;
  std::vector<Layer> layers_;
  int64_t length_ = 0;
};

}  // namespace ridgeline::nn
