// FlatLayout: where each parameter of a pipeline stage lies in the stage's flat buffers.
//
// All parameters of a stage are views of one buffer in the compute precision, their main gradients views of one in fp32 at
// the same offsets. The buffer is a row of buckets. A bucket is what is reduced at once over the data axis; its size is a
// multiple of the data axis, so with ZeRO-1 rank d owns the d-th equal part of every bucket (masters, moments and update).
// Buckets follow the order in which backward finishes gradients (last unit first), so that reductions overlap backward.
// Parameters whose gradients need a reduction before that of the data axis (partial on the tensor axis; tied over stages)
// are kept in buckets of their own: then one collective on the range serves them all.
#pragma once

#include <cstdint>
#include <vector>

#include "spec/parameters.h"
#include "spec/placement.h"

namespace ridgeline::spec {

struct FlatEntry {
  int64_t parameter = 0;  // index in the declared list
  Box box;                // what this rank's tensor coordinate holds of it
  Range range;            // elements in the flat buffer
  int64_t bucket = 0;
};

struct FlatBucket {
  Range range;                   // elements, padding included
  bool tensor_partial = false;   // gradients are summed over the tensor axis first
  bool tied = false;             // gradients are summed over the stages that share the parameter
  int64_t first_unit = 0;        // gradients are final once backward has left this unit
};

struct FlatLayout {
  std::vector<FlatEntry> entries;  // ordered by range
  std::vector<FlatBucket> buckets;
  int64_t elements = 0;            // of the whole buffer, padding included
  int64_t data_size = 1;

  // Part of `bucket` that coordinate `data_index` of the data axis owns under ZeRO-1.
  Range owned(const FlatBucket& bucket, int64_t data_index) const;
};

// `stages`: the units of every stage, of which this is number `stage`; a parameter is tied if its units lie in different
// ones. `bucket_mib` counts fp32 gradients.
FlatLayout make_flat_layout(const std::vector<ParameterSpec>& parameters, const std::vector<Range>& stages, int64_t stage,
                            int64_t tensor_size, int64_t tensor_index, int64_t data_size, double bucket_mib);

// True if a unit of the parameter lies in `stage`, and if its units lie in more than one of `stages`.
bool in_stage(const ParameterSpec& parameter, const Range& stage);
bool is_tied(const ParameterSpec& parameter, const std::vector<Range>& stages);

}  // namespace ridgeline::spec
