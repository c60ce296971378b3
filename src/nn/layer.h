// A transformer layer: attention and MLP, each a residual branch behind a norm.
#pragma once

#include "nn/residual_branch.h"
#include "nn/rotary.h"
#include "nn/unit.h"

namespace ridgeline::nn {

// The MLP of layer `layer`, of the model's kind.
std::unique_ptr<Branch> make_mlp(const Context& context, const FlatParameters& parameters, int64_t layer);

class Layer : public Unit {
 public:
  // `rotary` is null where positions are learned.
  Layer(const Context& context, const FlatParameters& parameters, int64_t layer, const Rotary* rotary);

  at::Tensor forward(const at::Tensor& input, const MicroBatch& batch, Saved* saved) const override;
  at::Tensor backward(const at::Tensor& output_gradient, const MicroBatch& batch, SavedRecord& saved,
                      WeightGradientQueue& weights) const override;

 private:
  at::Tensor forward_saving(const at::Tensor& input, const MicroBatch& batch, Saved* attention, Saved* mlp) const;

  const Context& context_;
  ResidualBranch attention_;
  ResidualBranch mlp_;
};

}  // namespace ridgeline::nn
