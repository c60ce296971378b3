// Branch: what stands between a norm and the residual sum of a transformer layer (attention, MLP).
//
// On the tensor axis its input is replicated and its output partial: the first linear layer is column parallel, the last
// row parallel. Norm, redistribution, bias of the last layer, dropout and the residual sum are ResidualBranch's matter.
#pragma once

#include <ATen/ATen.h>

#include "nn/linear.h"
#include "nn/micro_batch.h"
#include "nn/saved.h"

namespace ridgeline::nn {

struct BranchGradients {
  at::Tensor input;         // partial on the tensor axis
  at::Tensor first_output;  // of the output of first_linear(); its weight gradient is the caller's, who has the input
};

class Branch {
 public:
  virtual ~Branch() = default;

  // input [rows, hidden] -> [rows, hidden], partial. `saved` is null where no backward follows.
  virtual at::Tensor forward(const at::Tensor& input, const MicroBatch& batch, Saved* saved) const = 0;

  // Queues the weight gradients of all linear layers but the first.
  virtual BranchGradients backward(const at::Tensor& output_gradient, const MicroBatch& batch, SavedRecord& saved,
                                   WeightGradientQueue& weights) const = 0;

  virtual const Linear& first_linear() const = 0;

  // Releases what Recompute::selective does not keep, and rebuilds it before backward.
  virtual void drop_recomputable(SavedRecord& saved) const = 0;
  virtual void recompute(SavedRecord& saved) const = 0;
};

}  // namespace ridgeline::nn
