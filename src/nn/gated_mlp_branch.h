// The MLP of Llama-like models: down(silu(gate(x)) * up(x)) (nn/kernels/swiglu.h).
#pragma once

#include <string>

#include "nn/branch.h"

namespace ridgeline::nn {

class GatedMlpBranch : public Branch {
 public:
  // `prefix`: "layers.N.mlp."
  GatedMlpBranch(const FlatParameters& parameters, const std::string& prefix);

  at::Tensor forward(const at::Tensor& input, const MicroBatch& batch, Saved* saved) const override;
  BranchGradients backward(const at::Tensor& output_gradient, const MicroBatch& batch, SavedRecord& saved,
                           WeightGradientQueue& weights) const override;
  void drop_recomputable(SavedRecord& saved) const override;
  void recompute(SavedRecord& saved, const MicroBatch& batch) const override;

 private:
  Linear gate_, up_, down_;
};

}  // namespace ridgeline::nn
