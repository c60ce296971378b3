// Final norm, output projection (vocabulary sharded over the tensor axis) and loss, fused in chunks of rows.
//
// Logits exist for one chunk at a time. In training their gradient is formed in place and multiplied out at once, so what is
// kept for backward is the gradient of the normed rows, as large as the rows themselves. Backward work of the output
// projection is therefore done in the forward action of the last stage.
#pragma once

#include "nn/context.h"
#include "nn/norm.h"
#include "nn/unit.h"

namespace ridgeline::nn {

class Head : public Unit {
 public:
  Head(const Context& context, const FlatParameters& parameters);

  at::Tensor forward(const at::Tensor& input, const MicroBatch& batch, Saved* saved) const override;
  at::Tensor backward(const at::Tensor& output_gradient, const MicroBatch& batch, SavedRecord& saved,
                      WeightGradientQueue& weights) const override;
  bool forward_adds_gradients() const override { return true; }

  // Logits [rows, vocabulary] of all vocabulary, for generation and tests.
  at::Tensor logits(const at::Tensor& input) const;

 private:
  // Token losses (fp32) of a chunk of rows; where a backward follows, the logits become their gradients.
  at::Tensor chunk_losses(const at::Tensor& logits, const at::Tensor& targets, bool backward, double gradient_scale) const;

  const Context& context_;
  Norm norm_;
  Linear output_;
  spec::Range vocabulary_;
};

}  // namespace ridgeline::nn
