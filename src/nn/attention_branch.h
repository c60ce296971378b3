// Causal self-attention: projection to heads of queries, keys and values, attention, output projection.
#pragma once

#include <string>

#include "nn/attention.h"
#include "nn/branch.h"
#include "nn/context.h"
#include "nn/qkv_projection.h"

namespace ridgeline::nn {

class AttentionBranch : public Branch {
 public:
  // `prefix`: "layers.N.attention."; `rotary` is null where positions are learned.
  AttentionBranch(const Context& context, const FlatParameters& parameters, const std::string& prefix, int64_t layer,
                  const Rotary* rotary);

  at::Tensor forward(const at::Tensor& input, const MicroBatch& batch, Saved* saved) const override;
  BranchGradients backward(const at::Tensor& output_gradient, const MicroBatch& batch, SavedRecord& saved,
                           WeightGradientQueue& weights) const override;
  // Outputs of the heads' norms; the fused kernel already rebuilds scores in its backward.
  void drop_recomputable(SavedRecord& saved) const override;
  void recompute(SavedRecord& saved, const MicroBatch& batch) const override;

 private:
  AttentionPattern pattern(const MicroBatch& batch) const;
  at::Tensor positions(const MicroBatch& batch) const;

  const Context& context_;
  int64_t layer_;
  QkvProjection qkv_;
  Linear output_;
};

}  // namespace ridgeline::nn
