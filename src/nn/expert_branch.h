// The experts of a layer in place of its MLP: each token goes to the ones that its router picks (nn/router.h), whose
// outputs are summed with the router's weights, and to shared experts, which every token takes.
//
//   y = sum over picked e of weight_e * down_e(silu(gate_e(x)) * up_e(x))   + shared MLP(x)
//
// The weight multiplies the activation, on the expert's rank: then the experts' outputs need not be kept, and the weight's
// gradient is a sum over the expert's channels. Tokens of one expert are rows next to each other, so that its matrix
// products are of dense matrices; an expert without tokens has none.
//
// On the tensor axis experts are cut as an MLP is (input replicated, output partial), or whole: then each rank routes its
// part of the rows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nn/branch.h"
#include "nn/expert_exchange.h"
#include "nn/gated_mlp_branch.h"
#include "nn/router.h"

namespace ridgeline::nn {

class ExpertBranch : public Branch {
 public:
  // `prefix`: "layers.N.mlp."
  ExpertBranch(const Context& context, const FlatParameters& parameters, const std::string& prefix);

  spec::Placement input_placement() const override;
  spec::Placement output_placement() const override;
  at::Tensor forward(const at::Tensor& input, const MicroBatch& batch, Saved* saved) const override;
  BranchGradients backward(const at::Tensor& output_gradient, const MicroBatch& batch, SavedRecord& saved,
                           WeightGradientQueue& weights) const override;
  void drop_recomputable(SavedRecord& saved) const override;
  void recompute(SavedRecord& saved, const MicroBatch& batch) const override;

 private:
  // One matrix of each expert on this rank.
  using Matrices = std::vector<Linear>;

  at::Tensor product(const Matrices& matrices, const at::Tensor& rows, const ExpertPlan& plan) const;
  at::Tensor input_gradient(const Matrices& matrices, const at::Tensor& gradient, const ExpertPlan& plan) const;
  void queue(const Matrices& matrices, const at::Tensor& input, const at::Tensor& gradient, const ExpertPlan& plan,
             WeightGradientQueue& weights) const;

  const Context& context_;
  Router router_;
  ExpertExchange exchange_;
  Matrices gate_, up_, down_;
  std::optional<GatedMlpBranch> shared_;
};

}  // namespace ridgeline::nn
