// Redistribute: the collectives of the tensor axis, stated as from which placement to which.
//
//   partial  -> replicate   all-reduce             shard(0) -> replicate   all-gather
//   partial  -> shard(0)    reduce-scatter         replicate -> shard(0)   a local slice
//   equal placements, or an axis of one rank: the tensor itself
//
// Cost on the wire per rank, for n ranks and b bytes of the replicated tensor: 2 b (n-1)/n, b (n-1)/n, b (n-1)/n, 0.
#pragma once

#include <ATen/ATen.h>

#include "mesh/communicator.h"
#include "spec/placement.h"

namespace ridgeline::nn {

// A redistribution under way. The source must not be touched before wait(); an all-reduce works in the source's memory.
class Redistribution {
 public:
  Redistribution(at::Tensor result, mesh::Work work) : result_(std::move(result)), work_(std::move(work)) {}
  at::Tensor wait();

 private:
  at::Tensor result_;
  mesh::Work work_;
};

Redistribution start_redistribute(const at::Tensor& source, const spec::Placement& from, const spec::Placement& to,
                                  const mesh::Communicator& axis);

inline at::Tensor redistribute(const at::Tensor& source, const spec::Placement& from, const spec::Placement& to,
                               const mesh::Communicator& axis) {
  return start_redistribute(source, from, to, axis).wait();
}

}  // namespace ridgeline::nn
