// MicroBatch: the data of one micro-batch of one data parallel replica.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "spec/placement.h"

namespace ridgeline::nn {

struct MicroBatch {
  at::Tensor tokens;   // int64 [micro_batch * sequence], sample after sample
  at::Tensor targets;  // int64 [micro_batch * sequence]; kIgnoredTarget (kernels/cross_entropy.h) does not count
  at::Tensor samples;  // int64 [micro_batch] on the CPU: global sample numbers, which dropout is keyed by
  // Where documents are separate, int64 [micro_batch * sequence]: places of tokens in their documents, 0 at the first one
  // of each and of each sample. Undefined: a sample is one document.
  at::Tensor positions;
  int64_t size = 0;      // samples
  int64_t sequence = 0;  // tokens of a sample
  int64_t step = 0;      // optimizer step, which dropout is keyed by
  // d(optimised loss) / d(sum of token losses): loss scale / global number of valid tokens of the step. Applied once, here.
  double gradient_scale = 1.0;
  bool training = true;  // dropout applies

  int64_t tokens_total() const { return size * sequence; }
};

// Positions of rows [range) of a micro-batch: whole samples follow each other.
inline at::Tensor row_positions(const MicroBatch& batch, const spec::Range& range, at::Device device) {
  if (batch.positions.defined()) return batch.positions.narrow(0, range.begin, range.size());
  const auto options = at::TensorOptions().dtype(at::kLong).device(device);
  return at::arange(range.begin, range.end, options).remainder_(batch.sequence);
}

// Numbers of the rows' documents within their samples, int64 [micro_batch, sequence]; undefined where a sample is one.
inline at::Tensor document_numbers(const MicroBatch& batch) {
  if (!batch.positions.defined()) return {};
  return batch.positions.view({batch.size, batch.sequence}).eq(0).cumsum(1);
}

}  // namespace ridgeline::nn
