// Norm: the model's kind of norm, over the rows of the residual stream or of heads, with its parameters.
#pragma once

#include <ATen/ATen.h>

#include <string>

#include "nn/flat_parameters.h"
#include "spec/model.h"

namespace ridgeline::nn {

// What a norm keeps of each row: fp32; `mean` is undefined for RMS norm, which subtracts none.
struct NormStatistics {
  at::Tensor mean, rstd;
};

class Norm {
 public:
  // `name`: "final_norm", say; the parameters are NAME.weight and, for LayerNorm, NAME.bias.
  Norm(const spec::ModelSpec& model, const FlatParameters& parameters, const std::string& name);

  at::Tensor forward(const at::Tensor& input, NormStatistics& statistics) const;
  at::Tensor forward(const at::Tensor& input) const;
  // The output again; on CPU with the same bits.
  at::Tensor recompute(const at::Tensor& input, const NormStatistics& statistics) const;
  // Returns the gradient of the input, with `residual_gradient` added where it is defined. Adds to the main gradients.
  at::Tensor backward(const at::Tensor& gradient, const at::Tensor& input, const NormStatistics& statistics,
                      const at::Tensor& residual_gradient = {}) const;

 private:
  double epsilon_;
  Parameter weight_;
  Parameter bias_;  // undefined tensors for RMS norm
};

}  // namespace ridgeline::nn
