#include "nn/linear.h"

#include "nn/kernels/accumulate.h"

namespace ridgeline::nn {

Parameter Linear::flattened(const Parameter& weight) {
  const int64_t in = weight.value.size(-1);
  return {weight.value.view({-1, in}), weight.gradient.view({-1, in})};
}

Linear::Linear(const Parameter& weight, const Parameter& bias)
    : weight_(flattened(weight)) {
  if (bias.value.defined()) bias_ = {bias.value.view({-1}), bias.gradient.view({-1})};
}

at::Tensor Linear::forward(const at::Tensor& input) const {
  return bias_.value.defined() ? at::linear(input, weight_.value, bias_.value) : product(input);
}

at::Tensor Linear::product(const at::Tensor& input) const { return at::linear(input, weight_.value); }

void Linear::product_into(at::Tensor& output, const at::Tensor& input) const {
  at::mm_out(output, input, weight_.value.t());
}

at::Tensor Linear::input_gradient(const at::Tensor& output_gradient) const {
  return at::mm(output_gradient, weight_.value);
}

void Linear::add_input_gradient(at::Tensor& input_gradient, const at::Tensor& output_gradient) const {
  input_gradient.addmm_(output_gradient, weight_.value);
}

void Linear::input_gradient_into(at::Tensor& input_gradient, const at::Tensor& output_gradient) const {
  at::mm_out(input_gradient, output_gradient, weight_.value);
}

void Linear::add_weight_gradient(const at::Tensor& input, const at::Tensor& output_gradient) const {
  if (input.scalar_type() == at::kFloat) {
    weight_.gradient.addmm_(output_gradient.t(), input);
  } else if (output_gradient.scalar_type() == at::kFloat) {
    weight_.gradient.addmm_(output_gradient.t(), input.to(at::kFloat));
  } else {
    add_into_main_gradient(weight_.gradient, at::mm(output_gradient.t(), input));
  }
  if (bias_.value.defined()) bias_gradient(bias_.gradient, output_gradient);
}

void WeightGradientQueue::run() {
  for (const Entry& entry : queue_) entry.layer->add_weight_gradient(entry.input, entry.output_gradient);
  queue_.clear();
}

void WeightGradientQueue::visit(const std::function<void(const at::Tensor&)>& visitor) const {
  for (const Entry& entry : queue_) {
    visitor(entry.input);
    visitor(entry.output_gradient);
  }
}

}  // namespace ridgeline::nn
