#include "nn/decoder.h"

#include <cmath>

#include "core/error.h"
#include "nn/attention.h"
#include "nn/kernels/gelu.h"
#include "nn/kernels/layer_norm.h"

namespace ridgeline::nn {

Decoder::Decoder(const Context& context, const FlatParameters& parameters)
    : context_(context),
      parameters_(parameters),
      token_weight_(weight("embedding.token.weight")),
      position_weight_(weight("embedding.position.weight")),
      norm_weight_(weight("final_norm.weight")),
      norm_bias_(weight("final_norm.bias")),
      head_weight_(context.model.tied ? token_weight_ : weight("head.weight")) {
  RIDGELINE_ASSERT(context.tensor->size() == 1);
  for (int64_t number = 0; number < context.model.layers; ++number) layers_.push_back(make_layer(number));
}

Decoder::Layer Decoder::make_layer(int64_t number) const {
  const spec::ModelSpec& model = context_.model;
  const std::string prefix = "layers." + std::to_string(number) + ".";
  const auto cache = [&] {
    return at::empty({1, model.heads, model.sequence, model.head_size()},
                     at::TensorOptions().dtype(context_.compute).device(context_.device));
  };
  return {weight(prefix + "attention_norm.weight"),
          weight(prefix + "attention_norm.bias"),
          weight(prefix + "attention.qkv.weight").view({3 * model.hidden, model.hidden}),
          weight(prefix + "attention.qkv.bias").view({3 * model.hidden}),
          weight(prefix + "attention.output.weight"),
          weight(prefix + "attention.output.bias"),
          weight(prefix + "mlp_norm.weight"),
          weight(prefix + "mlp_norm.bias"),
          weight(prefix + "mlp.up.weight"),
          weight(prefix + "mlp.up.bias"),
          weight(prefix + "mlp.down.weight"),
          weight(prefix + "mlp.down.bias"),
          cache(),
          cache()};
}

at::Tensor Decoder::attention(Layer& layer, const at::Tensor& input) const {
  const spec::ModelSpec& model = context_.model;
  const int64_t rows = input.size(0);
  const double scale = 1.0 / std::sqrt(static_cast<double>(model.head_size()));
  const at::Tensor qkv = at::linear(input, layer.qkv_weight, layer.qkv_bias);
  // [query, key or value; one text; heads; rows; head size]
  const at::Tensor parts = qkv.view({1, rows, 3, model.heads, model.head_size()}).permute({2, 0, 3, 1, 4});
  layer.keys.narrow(2, length_, rows).copy_(parts[1]);
  layer.values.narrow(2, length_, rows).copy_(parts[2]);
  at::Tensor output;
  if (length_ == 0) {
    output = attention_forward(parts[0], parts[1], parts[2], scale, {}).output;
  } else {  // one query, which sees all keys
    const at::Tensor keys = layer.keys.narrow(2, 0, length_ + rows), values = layer.values.narrow(2, 0, length_ + rows);
    const at::Tensor scores = at::matmul(parts[0], keys.transpose(-2, -1)).to(at::kFloat).mul_(scale);
    output = at::matmul(at::softmax(scores, -1).to(values.scalar_type()), values);
  }
  return at::linear(output.transpose(1, 2).reshape({rows, model.hidden}), layer.output_weight, layer.output_bias);
}

at::Tensor Decoder::mlp(const Layer& layer, const at::Tensor& input) const {
  const at::Tensor wide = at::linear(input, layer.up_weight);
  gelu_forward(wide, layer.up_bias, wide);
  return at::linear(wide, layer.down_weight, layer.down_bias);
}

at::Tensor Decoder::append(std::span<const int64_t> tokens) {
  const int64_t rows = static_cast<int64_t>(tokens.size());
  RIDGELINE_ASSERT(rows > 0 && length_ + rows <= room() && (rows == 1 || length_ == 0));
  const double epsilon = context_.model.norm_epsilon;
  const at::Tensor index = at::tensor(at::ArrayRef<int64_t>(tokens.data(), tokens.size())).to(context_.device);
  at::Tensor stream = token_weight_.index_select(0, index).add_(position_weight_.narrow(0, length_, rows));
  for (Layer& layer : layers_) {
    const at::Tensor first =
        layer_norm_forward(stream, layer.attention_norm_weight, layer.attention_norm_bias, epsilon).out;
    stream.add_(attention(layer, first));
    const at::Tensor second = layer_norm_forward(stream, layer.mlp_norm_weight, layer.mlp_norm_bias, epsilon).out;
    stream.add_(mlp(layer, second));
  }
  length_ += rows;
  const at::Tensor last = stream.narrow(0, rows - 1, 1).contiguous();
  return at::linear(layer_norm_forward(last, norm_weight_, norm_bias_, epsilon).out, head_weight_).squeeze(0);
}

}  // namespace ridgeline::nn
