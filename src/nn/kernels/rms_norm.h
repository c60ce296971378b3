// RMSNorm over the last dim: y = x / sqrt(mean(x^2) + epsilon) * weight (Zhang, Sennrich, arXiv 1910.07467). Statistics
// and sums are fp32; the weight's gradient goes straight into its fp32 main gradient, summed in a fixed order that does
// not depend on threads.
#pragma once

#include <ATen/core/Tensor.h>

namespace ridgeline::nn {

struct RmsNormOutput {
  at::Tensor out;   // like x
  at::Tensor rstd;  // fp32, one for each row: 1 / sqrt(mean(x^2) + epsilon)
};

// x [..., columns], weight [columns], in one dtype.
RmsNormOutput rms_norm_forward(const at::Tensor& x, const at::Tensor& weight, double epsilon);

// The output again, from the saved statistic. On CPU it has the bits of the forward pass, elsewhere it agrees to
// rounding.
at::Tensor rms_norm_recompute(const at::Tensor& x, const at::Tensor& rstd, const at::Tensor& weight);

// Returns the gradient of x; where `residual_gradient` is defined it is added before rounding. Adds the gradient of the
// weight into `weight_main` (fp32 [columns]).
at::Tensor rms_norm_backward(const at::Tensor& gradient, const at::Tensor& x, const at::Tensor& rstd,
                             const at::Tensor& weight, const at::Tensor& weight_main,
                             const at::Tensor& residual_gradient = {});

// The same by plain tensor operations, on any device.
namespace plain {
RmsNormOutput rms_norm_forward(const at::Tensor& x, const at::Tensor& weight, double epsilon);
at::Tensor rms_norm_recompute(const at::Tensor& x, const at::Tensor& rstd, const at::Tensor& weight);
at::Tensor rms_norm_backward(const at::Tensor& gradient, const at::Tensor& x, const at::Tensor& rstd,
                             const at::Tensor& weight, const at::Tensor& weight_main,
                             const at::Tensor& residual_gradient = {});
}  // namespace plain

}  // namespace ridgeline::nn
