// Dropout whose decisions are a function of (seed, step, site, sample, position, channel): core/random.h has the
// definition. No mask is stored; backward is the same call on the gradient. The bits are the same on every device and
// in every layout of ranks, because positions, samples and channels are global.
//
// CPU: one fused pass. Other devices: integer tensor operations (about one byte of temporaries an element, times six).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "core/random.h"

namespace ridgeline::nn {

// Where a tensor [positions, batch, channels] lies in the global batch.
struct DropoutPlace {
  uint64_t key = 0;                  // dropout_key(seed, step, site)
  int64_t first_position = 0;        // of the sequence
  std::span<const int64_t> samples;  // global sample number of each batch row
  int64_t first_channel = 0;
};

// out = x * mask / (1 - p), for x [positions, batch, channels] in fp32, bf16 or fp16. `out` may be x.
void apply_dropout(const at::Tensor& x, const DropoutRate& rate, const DropoutPlace& place, const at::Tensor& out);

// out = residual + x * mask / (1 - p), rounded once. `out` may be x or residual.
void apply_dropout_and_add(const at::Tensor& x, const at::Tensor& residual, const DropoutRate& rate,
                           const DropoutPlace& place, const at::Tensor& out);

// The same by plain tensor operations, on any device; `residual` may be undefined.
namespace plain {
void apply_dropout(const at::Tensor& x, const at::Tensor& residual, const DropoutRate& rate, const DropoutPlace& place,
                   const at::Tensor& out);
}  // namespace plain

}  // namespace ridgeline::nn
