// Sums of squares of flat fp32 gradients, for the global norm. Deterministic; on CPU accumulated in double in blocks of
// a fixed size, so that the number of threads does not matter. On other devices nothing waits for the device: the
// result is a tensor there.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

namespace ridgeline::optim {

// A range of main gradients, and what its sum counts with: 1 / copies where several ranks hold the same values.
struct GradientPart {
  at::Tensor gradient;  // fp32, contiguous
  double weight = 1.0;
};

// Sum of weight * (sum of squares), a double tensor without dims on `device`, where all parts are.
at::Tensor weighted_square_sum(std::span<const GradientPart> parts, at::Device device);

// Sum of squares of one range, read on the host.
double sum_of_squares(const at::Tensor& gradient);

// The same by tensor operations, on any device.
namespace plain {
at::Tensor weighted_square_sum(std::span<const GradientPart> parts, at::Device device);
}  // namespace plain

}  // namespace ridgeline::optim
