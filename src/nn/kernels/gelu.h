// GELU in its tanh form (Hendrycks, Gimpel, arXiv 1606.08415), optionally fused with the bias that precedes it:
//
//   gelu(z) = z / 2 (1 + tanh(sqrt(2 / pi) (z + 0.044715 z^3))),  z = x + bias.
//
// The saved quantity for backward is x, without the bias. Arithmetic is fp32; one pass on CPU.
#pragma once

#include <ATen/core/Tensor.h>

namespace ridgeline::nn {

// out = gelu(x + bias) for x [..., columns]; `bias` [columns] may be undefined; `out` may be x.
void gelu_forward(const at::Tensor& x, const at::Tensor& bias, const at::Tensor& out);

// In place: gradient *= gelu'(x + bias).
void gelu_backward(const at::Tensor& gradient, const at::Tensor& x, const at::Tensor& bias);

// The same by plain tensor operations, on any device.
namespace plain {
void gelu_forward(const at::Tensor& x, const at::Tensor& bias, const at::Tensor& out);
void gelu_backward(const at::Tensor& gradient, const at::Tensor& x, const at::Tensor& bias);
}  // namespace plain

}  // namespace ridgeline::nn
