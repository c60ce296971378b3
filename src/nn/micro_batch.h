// MicroBatch: the data of one micro-batch of one data parallel replica; where ranks share a sequence
// (strategy.context), this rank's part of it.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "spec/placement.h"

namespace ridgeline::nn {

struct MicroBatch {
  at::Tensor tokens;   // int64 [micro_batch * sequence], sample after sample
  at::Tensor targets;  // int64 [micro_batch * sequence]; kIgnoredTarget (kernels/cross_entropy.h) does not count
  at::Tensor samples;  // int64 [micro_batch] on the CPU: global sample numbers, which dropout is keyed by
  // int64 [micro_batch * sequence]: places of tokens in their samples or, where documents are separate, in their
  // documents. Undefined: those of whole samples.
  at::Tensor positions;
  // int64 [micro_batch, whole sequence]: numbers of tokens' documents. Undefined: a sample is one.
  at::Tensor documents;
  std::vector<spec::Range> places;  // of tokens in their samples, in order, for each sample; empty: all
  int64_t size = 0;      // samples
  int64_t sequence = 0;  // tokens of a sample that are here
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

}  // namespace ridgeline::nn
