// Dropout on the residual stream, keyed by (seed, step, site, global sample, position, channel): the same elements are
// dropped in every layout, and nothing is stored for backward.
#pragma once

#include <ATen/ATen.h>

#include "nn/context.h"
#include "nn/micro_batch.h"

namespace ridgeline::nn {

// residual + dropout(branch + bias), rows in the residual placement. `branch` may be overwritten; `bias` may be
// undefined.
at::Tensor add_bias_dropout_residual(at::Tensor branch, const at::Tensor& bias, const at::Tensor& residual,
                                     const Context& context, const MicroBatch& batch, int64_t site);

// dropout(input), and its backward, which is the same product. Returns the tensor itself where nothing is dropped.
at::Tensor hidden_dropout(const at::Tensor& input, const Context& context, const MicroBatch& batch, int64_t site);
inline at::Tensor hidden_dropout_backward(const at::Tensor& gradient, const Context& context, const MicroBatch& batch,
                                          int64_t site) {
  return hidden_dropout(gradient, context, batch, site);
}

}  // namespace ridgeline::nn
