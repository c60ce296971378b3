// GradientReduction: sums the main gradients of a stage over the ranks that share parameters, bucket by bucket.
//
// What is reduced over which axis follows from the declared placements (spec/flat_layout.h): every bucket is partial on the
// data axis, some are partial on the tensor axis or tied over stages first. Buckets of the first kind start as soon as
// backward has left their last unit, while it goes on; the others at the end. With ZeRO-1 the data axis gets a
// reduce-scatter: each rank ends up with the sum of the part of each bucket that it owns.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "mesh/mesh.h"
#include "nn/flat_parameters.h"

namespace ridgeline::optim {

class GradientReduction {
 public:
  GradientReduction(const nn::FlatParameters& parameters, const mesh::Mesh& mesh, int64_t zero_stage);

  // Backward of the last micro-batch has left `unit`.
  void unit_finished(int64_t unit);
  // Starts what has not started, and waits for all.
  void finish();

 private:
  void start_data_reduction(size_t bucket);
  at::Tensor gradients(const spec::Range& range) const;

  const nn::FlatParameters& parameters_;
  const mesh::Mesh& mesh_;
  int64_t zero_stage_;
  std::vector<bool> started_;
  std::vector<mesh::Work> works_;
};

}  // namespace ridgeline::optim
