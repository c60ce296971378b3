// Causal self-attention: projection to heads of queries, keys and values, attention, output projection. Where ranks
// share sequences, attention is to all of them: keys and values go round (nn/ring_attention.h), or heads are shared out
// (nn/head_exchange.h).
#pragma once

#include <optional>
#include <string>

#include "nn/attention.h"
#include "nn/branch.h"
#include "nn/context.h"
#include "nn/head_exchange.h"
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
  bool on_ring() const { return context_.context_axis != nullptr && !exchange_; }
  at::Tensor forward_exchanged(Qkv qkv, const MicroBatch& batch, Saved* saved) const;
  AttentionGradients backward_exchanged(const at::Tensor& rows_gradient, const MicroBatch& batch,
                                        SavedRecord& saved) const;

  const Context& context_;
  int64_t layer_;
  QkvProjection qkv_;
  Linear output_;
  std::optional<HeadExchange> exchange_;  // where the ranks that share sequences share out heads
};

}  // namespace ridgeline::nn
