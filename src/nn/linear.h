// Linear layers with an explicit backward in two halves, and the queue of the second half.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <vector>

#include "nn/flat_parameters.h"

namespace ridgeline::nn {

// y = x W^T + b on rows: x [rows, in], W [out, in] (leading dims of a W with more than two are flattened), b [out].
class Linear {
 public:
  Linear() = default;  // to be assigned
  explicit Linear(const Parameter& weight) : weight_(flattened(weight)) {}
  Linear(const Parameter& weight, const Parameter& bias);  // a bias of undefined tensors is none

  at::Tensor forward(const at::Tensor& input) const;
  // x W^T alone, for a caller that adds the bias in a fused kernel of its own; its gradient is still this layer's.
  at::Tensor product(const at::Tensor& input) const;
  void product_into(at::Tensor& output, const at::Tensor& input) const;
  const at::Tensor& weight() const { return weight_.value; }
  const at::Tensor& bias() const { return bias_.value; }
  at::Tensor input_gradient(const at::Tensor& output_gradient) const;
  void add_input_gradient(at::Tensor& input_gradient, const at::Tensor& output_gradient) const;
  void input_gradient_into(at::Tensor& input_gradient, const at::Tensor& output_gradient) const;
  // Adds into the main gradients of weight and bias. The output's gradient may be fp32 where the input is not.
  void add_weight_gradient(const at::Tensor& input, const at::Tensor& output_gradient) const;

 private:
  static Parameter flattened(const Parameter& weight);

  Parameter weight_;
  Parameter bias_;  // undefined tensors where there is none
};

// Weight gradients that backward has made possible and nobody has computed yet. A piece adds one as soon as the
// gradient of a linear layer's output is known and calls overlap() while it waits for communication: then they are
// computed there, unless the schedule has asked for them later (backward_weight actions), which calls run().
class WeightGradientQueue {
 public:
  explicit WeightGradientQueue(bool deferred) : deferred_(deferred) {}

  void add(const Linear& layer, at::Tensor input, at::Tensor output_gradient) {
    queue_.push_back({&layer, std::move(input), std::move(output_gradient)});
  }
  void overlap() {
    if (!deferred_) run();
  }
  void run();
  bool empty() const { return queue_.empty(); }
  // Calls `visitor` with every tensor that is kept for a weight gradient not yet computed.
  void visit(const std::function<void(const at::Tensor&)>& visitor) const;

 private:
  struct Entry {
    const Linear* layer;
    at::Tensor input;
    at::Tensor output_gradient;
  };
  bool deferred_;
  std::vector<Entry> queue_;
};

}  // namespace ridgeline::nn
