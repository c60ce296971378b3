// LayerNorm over the last dim: y = (x - mean) / sqrt(variance + epsilon) * weight + bias (Ba, Kiros, Hinton, arXiv
// 1607.06450), with the residual additions that surround it in a transformer fused in. Statistics and sums are fp32;
// parameter gradients go straight into fp32 main gradients, summed in a fixed order that does not depend on threads.
#pragma once

#include <ATen/core/Tensor.h>

namespace ridgeline::nn {

struct LayerNormOutput {
  at::Tensor out;   // like x
  at::Tensor mean;  // fp32, one for each row
  at::Tensor rstd;  // fp32: 1 / sqrt(variance + epsilon)
};

// x [..., columns], weight and bias [columns], in one dtype.
LayerNormOutput layer_norm_forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                                   double epsilon);

// sum = x + residual, rounded to the dtype, and LayerNorm of it. `sum` may be x or residual; backward needs it as its
// x.
LayerNormOutput layer_norm_add_forward(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& sum,
                                       const at::Tensor& weight, const at::Tensor& bias, double epsilon);

// The output again, from saved statistics. On CPU it has the bits of the forward pass, elsewhere it agrees to rounding.
at::Tensor layer_norm_recompute(const at::Tensor& x, const at::Tensor& mean, const at::Tensor& rstd,
                                const at::Tensor& weight, const at::Tensor& bias);

// Returns the gradient of x; where `residual_gradient` is defined it is added before rounding (the gradient that
// reaches x past the norm). Adds the gradients of weight and bias into `weight_main` and `bias_main` (fp32 [columns]).
at::Tensor layer_norm_backward(const at::Tensor& gradient, const at::Tensor& x, const at::Tensor& mean,
                               const at::Tensor& rstd, const at::Tensor& weight, const at::Tensor& weight_main,
                               const at::Tensor& bias_main, const at::Tensor& residual_gradient = {});

// The same by plain tensor operations, on any device.
namespace plain {
LayerNormOutput layer_norm_forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                                   double epsilon);
at::Tensor layer_norm_recompute(const at::Tensor& x, const at::Tensor& mean, const at::Tensor& rstd,
                                const at::Tensor& weight, const at::Tensor& bias);
at::Tensor layer_norm_backward(const at::Tensor& gradient, const at::Tensor& x, const at::Tensor& mean,
                               const at::Tensor& rstd, const at::Tensor& weight, const at::Tensor& weight_main,
                               const at::Tensor& bias_main, const at::Tensor& residual_gradient = {});
}  // namespace plain

}  // namespace ridgeline::nn
