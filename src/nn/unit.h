// Unit: one element of the row that a model is (embedding, layers, head; spec/parameters.h). A pipeline stage holds a range.
#pragma once

#include <ATen/ATen.h>

#include "nn/linear.h"
#include "nn/micro_batch.h"
#include "nn/saved.h"

namespace ridgeline::nn {

class Unit {
 public:
  virtual ~Unit() = default;

  // input: the residual stream [local rows, hidden], undefined for the embedding. Returns the residual stream, and for the
  // head the sum of token losses (double, one element, equal on all ranks of the tensor axis).
  // `saved` is null where no backward follows.
  virtual at::Tensor forward(const at::Tensor& input, const MicroBatch& batch, Saved* saved) const = 0;

  // Gradient of the input (undefined for the embedding). output_gradient is undefined for the head.
  // Weight gradients that `weights` does not hold back are added to the main gradients.
  virtual at::Tensor backward(const at::Tensor& output_gradient, const MicroBatch& batch, SavedRecord& saved,
                              WeightGradientQueue& weights) const = 0;

  // Exceptions to the rule that forward reads parameters alone, and backward reads them and adds to their gradients.
  virtual bool forward_adds_gradients() const { return false; }
  virtual bool backward_reads_values() const { return true; }
};

}  // namespace ridgeline::nn
