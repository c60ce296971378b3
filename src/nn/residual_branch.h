// ResidualBranch: x + dropout(branch(norm(x)) + bias), with the redistributions of the tensor axis around the branch.
//
//   norm           on the residual placement (rows, sharded with sequence parallelism)
//   -> replicate   all-gather with sequence parallelism, else nothing
//   branch         column parallel ... row parallel: output partial
//   -> residual    all-reduce, or reduce-scatter with sequence parallelism
//   bias, dropout, residual sum
#pragma once

#include <memory>
#include <string>

#include "nn/branch.h"
#include "nn/context.h"
#include "nn/norm.h"

namespace ridgeline::nn {

class ResidualBranch {
 public:
  // `norm`: "layers.N.mlp_norm", `output_bias`: "layers.N.mlp.down.bias"; `site` keys the branch's dropout.
  ResidualBranch(const Context& context, const FlatParameters& parameters, std::unique_ptr<Branch> branch,
                 const std::string& norm, const std::string& output_bias, int64_t site);

  // input and output [local rows, hidden] in the residual placement; `saved` is null where no backward follows.
  at::Tensor forward(const at::Tensor& input, const MicroBatch& batch, Saved* saved) const;
  // Gradient of the input. Norm, bias and (unless deferred) linear gradients are added to the main gradients.
  at::Tensor backward(const at::Tensor& output_gradient, const MicroBatch& batch, SavedRecord& saved,
                      WeightGradientQueue& weights) const;

 private:
  const Context& context_;
  std::unique_ptr<Branch> branch_;
  Norm norm_;
  Parameter output_bias_;  // undefined tensors where there is none
  int64_t site_;
};

}  // namespace ridgeline::nn
