// The update of the biases that even out the use of experts without a loss (Wang et al., arXiv 2408.15664):
//
//   bias += rate * sign(even share - tokens that picked the expert)
//
// over all tokens of a step. The number of tokens arrives as the bias's gradient, a plain count: it is reduced, sharded and
// zeroed as every gradient is, and no loss scale or clipping touches it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

namespace ridgeline::optim {

struct Balance {
  double rate = 0.0;
  double even_share = 0.0;  // tokens of a step that each expert gets where all get equally many
};

// Elements [begin, end) of the buffers.
struct BalanceRange {
  int64_t begin = 0;
  int64_t end = 0;
};

// `master` and `counts` are fp32; `value`, in the compute precision or `master` itself, becomes the rounded master.
void balance_step(const at::Tensor& master, const at::Tensor& counts, const at::Tensor& value,
                  std::span<const BalanceRange> ranges, const Balance& balance);

}  // namespace ridgeline::optim
