// Token embedding (vocabulary sharded over the tensor axis) plus learned positions where the model has them, with dropout.
#pragma once

#include "nn/context.h"
#include "nn/unit.h"

namespace ridgeline::nn {

class Embedding : public Unit {
 public:
  Embedding(const Context& context, const FlatParameters& parameters);

  at::Tensor forward(const at::Tensor& input, const MicroBatch& batch, Saved* saved) const override;
  at::Tensor backward(const at::Tensor& output_gradient, const MicroBatch& batch, SavedRecord& saved,
                      WeightGradientQueue& weights) const override;
  bool backward_reads_values() const override { return false; }

 private:
  at::Tensor local_tokens(const at::Tensor& tokens, at::Tensor* outside) const;
  at::Tensor positions(const MicroBatch& batch) const;  // of this rank's rows

  const Context& context_;
  Parameter token_;
  Parameter position_;  // undefined tensors where positions are rotary
  spec::Range vocabulary_;  // rows of the token embedding that this rank holds
};

}  // namespace ridgeline::nn
