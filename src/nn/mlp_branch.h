// The MLP of the GPT family: up projection, GELU (tanh form), down projection. Its gated sibling is
// nn/gated_mlp_branch.h.
#pragma once

#include <string>

#include "nn/branch.h"

namespace ridgeline::nn {

class MlpBranch : public Branch {
 public:
  // `prefix`: "layers.N.mlp."
  MlpBranch(const FlatParameters& parameters, const std::string& prefix);

  at::Tensor forward(const at::Tensor& input, const MicroBatch& batch, Saved* saved) const override;
  BranchGradients backward(const at::Tensor& output_gradient, const MicroBatch& batch, SavedRecord& saved,
                           WeightGradientQueue& weights) const override;
  void drop_recomputable(SavedRecord& saved) const override;
  void recompute(SavedRecord& saved, const MicroBatch& batch) const override;

 private:
  Linear up_;
  Linear down_;
};

}  // namespace ridgeline::nn
