// GradientReduction: sums the main gradients of a stage over the ranks that share parameters, bucket by bucket.
//
// What is reduced over which axis follows from the declared placements (spec/flat_layout.h): every bucket is partial on the
// data axis, those of experts over the ranks that have the same ones, some are partial on the tensor axis or tied over
// stages too. The data axis comes first, as soon as backward
// has left a bucket's last unit, while it goes on: an all-reduce, or with ZeRO-1 a reduce-scatter among the ranks that
// share the buckets, which leaves each the sum of its shard. The rest is done on what this rank has then: over replicas of
// the shards (hybrid sharding), over the tensor axis, over tied stages. With ZeRO-2 and 3 the reduce-scatter happens for
// each micro-batch (optim/unit_shards.h), and only the rest is left for here.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "mesh/mesh.h"
#include "nn/flat_parameters.h"

namespace ridgeline::optim {

class GradientReduction {
 public:
  GradientReduction(const nn::FlatParameters& parameters, const mesh::Mesh& mesh, const spec::Strategy& strategy);

  // Backward of the last micro-batch has left `unit`.
  void unit_finished(int64_t unit);
  // Starts what has not started, and waits for all.
  void finish();

 private:
  void start_data_reduction(size_t bucket);
  // What this rank has the sum of after the data axis.
  at::Tensor reduced(const spec::FlatBucket& bucket) const;
  template <typename Chosen>
  void reduce_rest(const mesh::Communicator& group, Chosen chosen);

  const nn::FlatParameters& parameters_;
  const mesh::Mesh& mesh_;
  bool sharded_;
  std::vector<bool> started_;
  std::vector<mesh::Work> works_;
};

}  // namespace ridgeline::optim
