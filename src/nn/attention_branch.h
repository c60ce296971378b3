// Multi-head causal self-attention: QKV projection, attention, output projection.
#pragma once

#include <string>

#include "nn/attention.h"
#include "nn/branch.h"
#include "nn/context.h"

namespace ridgeline::nn {

class AttentionBranch : public Branch {
 public:
  // `prefix`: "layers.N.attention."
  AttentionBranch(const Context& context, const FlatParameters& parameters, const std::string& prefix, int64_t layer);

  at::Tensor forward(const at::Tensor& input, const MicroBatch& batch, Saved* saved) const override;
  BranchGradients backward(const at::Tensor& output_gradient, const MicroBatch& batch, SavedRecord& saved,
                           WeightGradientQueue& weights) const override;
  const Linear& first_linear() const override { return qkv_; }
  void drop_recomputable(SavedRecord&) const override {}  // the fused kernel already rebuilds scores in its backward
  void recompute(SavedRecord&) const override {}

 private:
  AttentionDropout dropout(const MicroBatch& batch) const;

  const Context& context_;
  int64_t layer_;
  spec::Range heads_;  // that this rank holds, of all
  double scale_;
  Linear qkv_;
  Linear output_;
};

}  // namespace ridgeline::nn
