// SwiGLU (Shazeer, arXiv 2002.05202): the product of one projection with the SiLU of another,
//
//   swiglu(gate, up) = gate / (1 + e^-gate) * up.
//
// Arithmetic is fp32; one pass on CPU.
#pragma once

#include <ATen/core/Tensor.h>

namespace ridgeline::nn {

// out = silu(gate) * up; all alike.
void swiglu_forward(const at::Tensor& gate, const at::Tensor& up, const at::Tensor& out);

// In place: `gate` and `up` become their gradients, for `gradient` that of the output.
void swiglu_backward(const at::Tensor& gradient, const at::Tensor& gate, const at::Tensor& up);

// The same by plain tensor operations, on any device.
namespace plain {
void swiglu_forward(const at::Tensor& gate, const at::Tensor& up, const at::Tensor& out);
void swiglu_backward(const at::Tensor& gradient, const at::Tensor& gate, const at::Tensor& up);
}  // namespace plain

}  // namespace ridgeline::nn
