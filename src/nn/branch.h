// Branch: what stands between a norm and the residual sum of a transformer layer (attention, MLP).
//
// On the tensor axis its input is replicated and its output partial: the linear layers that read it are column parallel, the
// last is row parallel. One that works on rows as such (experts that are whole) has a part of the rows in and out. Norm, redistribution, bias of the last layer, dropout and the residual sum are ResidualBranch's matter.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "nn/linear.h"
#include "nn/micro_batch.h"
#include "nn/saved.h"

namespace ridgeline::nn {

// The gradient of a linear layer's output.
struct OutputGradient {
  const Linear* layer;
  at::Tensor gradient;
};

struct BranchGradients {
  at::Tensor input;                   // partial on the tensor axis, or of the rows that the input had
  std::vector<OutputGradient> first;  // of the layers that read the input: weight gradients are the caller's, who has it
};

class Branch {
 public:
  virtual ~Branch() = default;

  // Placements on the tensor axis. Gradients lie so too, but for replicated values partial, and the other way round.
  virtual spec::Placement input_placement() const { return spec::Placement::replicate(); }
  virtual spec::Placement output_placement() const { return spec::Placement::partial(); }

  // input [rows, hidden] -> [rows, hidden]. `saved` is null where no backward follows.
  virtual at::Tensor forward(const at::Tensor& input, const MicroBatch& batch, Saved* saved) const = 0;

  // Queues the weight gradients of all linear layers but those that read the input.
  virtual BranchGradients backward(const at::Tensor& output_gradient, const MicroBatch& batch, SavedRecord& saved,
                                   WeightGradientQueue& weights) const = 0;

  // Releases what Recompute::selective does not keep, and rebuilds it before backward.
  virtual void drop_recomputable(SavedRecord& saved) const = 0;
  virtual void recompute(SavedRecord& saved, const MicroBatch& batch) const = 0;
};

}  // namespace ridgeline::nn
