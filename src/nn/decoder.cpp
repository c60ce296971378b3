#include "nn/decoder.h"

#include <algorithm>

#include "core/error.h"
#include "nn/attention.h"
#include "nn/layer.h"

namespace ridgeline::nn {

Decoder::Decoder(const Context& context, const FlatParameters& parameters)
    : context_(context),
      token_weight_(parameters.parameter("embedding.token.weight").value),
      position_weight_(parameters.parameter_if_declared("embedding.position.weight").value),
      norm_(context.model, parameters, "final_norm"),
      head_weight_(context.model.tied ? token_weight_ : parameters.parameter("head.weight").value) {
  RIDGELINE_ASSERT(context.tensor->size() == 1);
  if (context.model.positions == spec::Positions::rotary) rotary_.emplace(context.model, context.device);
  for (int64_t number = 0; number < context.model.layers; ++number) layers_.push_back(make_layer(parameters, number));
}

Decoder::Layer Decoder::make_layer(const FlatParameters& parameters, int64_t number) const {
  const spec::ModelSpec& model = context_.model;
  const std::string prefix = "layers." + std::to_string(number) + ".";
  const auto cache = [&] {
    return at::empty({1, model.key_heads(), model.sequence, model.head_size()},
                     at::TensorOptions().dtype(context_.compute).device(context_.device));
  };
  return {Norm(model, parameters, prefix + "attention_norm"),
          QkvProjection(context_, parameters, prefix + "attention.", rotary_ ? &*rotary_ : nullptr),
          Linear(parameters.parameter(prefix + "attention.output.weight"),
                 parameters.parameter_if_declared(prefix + "attention.output.bias")),
          Norm(model, parameters, prefix + "mlp_norm"),
          make_mlp(context_, parameters, number),
          parameters.parameter_if_declared(prefix + "mlp.down.bias").value,
          cache(),
          cache()};
}

// One query, which sees the keys of the window; query heads of a group read the same keys.
at::Tensor Decoder::attend(const Layer& layer, const at::Tensor& query, const AttentionPattern& pattern) const {
  const int64_t end = length_ + 1, groups = layer.keys.size(1);
  const int64_t seen = pattern.window > 0 ? std::min(pattern.window, end) : end;
  const at::Tensor keys = layer.keys.narrow(2, end - seen, seen), values = layer.values.narrow(2, end - seen, seen);
  const at::Tensor grouped = query.reshape({1, groups, query.size(1) / groups, query.size(3)});
  const at::Tensor scores = at::matmul(grouped, keys.transpose(-2, -1)).to(at::kFloat).mul_(pattern.scale);
  return at::matmul(at::softmax(scores, -1).to(values.scalar_type()), values).view(query.sizes());
}

at::Tensor Decoder::attention(Layer& layer, const at::Tensor& input, const at::Tensor& positions) const {
  const int64_t rows = input.size(0);
  const AttentionPattern pattern = attention_pattern(context_.model);
  const Qkv qkv = layer.qkv.forward(input, positions);
  const at::Tensor query = layer.qkv.as_heads(qkv.query, 1), key = layer.qkv.as_heads(qkv.key, 1);
  const at::Tensor value = layer.qkv.as_heads(qkv.value, 1);
  layer.keys.narrow(2, length_, rows).copy_(key);
  layer.values.narrow(2, length_, rows).copy_(value);
  const at::Tensor output =
      length_ == 0 ? attention_forward(query, key, value, pattern).output : attend(layer, query, pattern);
  return layer.attention_output.forward(output.transpose(1, 2).reshape({rows, -1}));
}

at::Tensor Decoder::append(std::span<const int64_t> tokens) {
  const int64_t rows = static_cast<int64_t>(tokens.size());
  RIDGELINE_ASSERT(rows > 0 && length_ + rows <= room() && (rows == 1 || length_ == 0));
  const at::Tensor index = at::tensor(at::ArrayRef<int64_t>(tokens.data(), tokens.size())).to(context_.device);
  const at::Tensor positions = at::arange(length_, length_ + rows, index.options());
  at::Tensor stream = token_weight_.index_select(0, index);
  if (position_weight_.defined()) stream.add_(position_weight_.narrow(0, length_, rows));
  MicroBatch batch;
  batch.training = false;
  for (Layer& layer : layers_) {
    stream.add_(attention(layer, layer.attention_norm.forward(stream), positions));
    stream.add_(layer.mlp->forward(layer.mlp_norm.forward(stream), batch, nullptr));
    if (layer.mlp_bias.defined()) stream.add_(layer.mlp_bias);
  }
  length_ += rows;
  const at::Tensor last = stream.narrow(0, rows - 1, 1).contiguous();
  return at::linear(norm_.forward(last), head_weight_).squeeze(0);
}

}  // namespace ridgeline::nn
