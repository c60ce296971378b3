// Sums into main gradients: fp32 buffers that gradients in the compute precision are added to. Results do not depend on
// the number of threads.
#pragma once

#include <ATen/core/Tensor.h>

namespace ridgeline::nn {

// main[c] += sum over rows of gradient[..., c], summed in fp32. `main` is [columns].
void bias_gradient(const at::Tensor& main, const at::Tensor& gradient);

// main += gradient, same number of elements. Also takes an fp32 gradient.
void add_into_main_gradient(const at::Tensor& main, const at::Tensor& gradient);

// The same by plain tensor operations, on any device.
namespace plain {
void bias_gradient(const at::Tensor& main, const at::Tensor& gradient);
void add_into_main_gradient(const at::Tensor& main, const at::Tensor& gradient);
}  // namespace plain

}  // namespace ridgeline::nn
