// AdamW (Loshchilov, Hutter, arXiv 1711.05101) with the update of torch.optim.AdamW, over flat fp32 buffers:
//
//   g = gradient * gradient_scale;  m += (1 - beta1) (g - m);  v = beta2 v + (1 - beta2) g^2
//   master = master (1 - lr weight_decay) - lr / (1 - beta1^t) * m / (sqrt(v / (1 - beta2^t)) + epsilon),   t = step +
//   1
//
// and parameter = master, rounded. CPU: one fused pass, the same bits for any number of threads. Other devices: ATen's
// fused kernel on the ranges.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

namespace ridgeline::optim {

// Elements [begin, end) of the buffers; elements in no range are left alone.
struct AdamWRange {
  int64_t begin = 0;
  int64_t end = 0;
  bool decay = true;  // weight decay applies
};

struct AdamWSettings {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
};

// One update, number `step` from 0. All tensors are one-dimensional, contiguous and of one size; all are fp32 but
// `parameter`, which is in the compute precision, or is `master` itself. The gradient is not changed on CPU; elsewhere
// it may be left scaled.
void adamw_step(const at::Tensor& master, const at::Tensor& first_moment, const at::Tensor& second_moment,
                const at::Tensor& gradient, const at::Tensor& parameter, std::span<const AdamWRange> ranges,
                const AdamWSettings& settings, int64_t step, double gradient_scale);

// The same by ATen's operations, on any device.
namespace plain {
void adamw_step(const at::Tensor& master, const at::Tensor& first_moment, const at::Tensor& second_moment,
                const at::Tensor& gradient, const at::Tensor& parameter, std::span<const AdamWRange> ranges,
                const AdamWSettings& settings, int64_t step, double gradient_scale);
}  // namespace plain

}  // namespace ridgeline::optim
