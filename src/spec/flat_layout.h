// FlatLayout: where each parameter of a pipeline stage lies in the stage's flat buffers.
//
// All parameters of a stage, of all its chunks of the model, are views of one buffer in the compute precision, their
// main gradients views of one in fp32 at the same offsets. The buffer is a row of buckets. A bucket is what is reduced
// at once over the data axis; its size is a multiple of the data axis, so with ZeRO-1 rank d owns the d-th equal part
// of every bucket (masters, moments and update). Buckets follow the order in which backward finishes gradients (last
// unit first, over all chunks), so that reductions overlap backward. Parameters whose gradients need a reduction before
// that of the data axis (partial on the tensor axis; tied over stages) are kept in buckets of their own: then one
// collective on the range serves them all.
//
// With ZeRO-2 and 3 a layout is cut by units instead: gradients (ZeRO-2) and values too (ZeRO-3) exist whole only while
// a unit is at work, in a working buffer, and else as shards. A group is the buckets that the same units use. Groups of
// one unit take turns in two slots of the working buffer, so that one unit's group is on its way while its neighbour
// computes; a group that several units of the stage share (tied embeddings on one stage) has a slot to itself. Places
// in the working buffer never change, and so views made once stay true.
#pragma once

#include <cstdint>
#include <vector>

#include "spec/parameters.h"
#include "spec/placement.h"

namespace ridgeline::spec {

// What one stage holds: the units of each of its chunks, in order of the model.
using StageUnits = std::vector<Range>;
// Stages of one chunk each.
std::vector<StageUnits> one_chunk_stages(const std::vector<Range>& stages);

struct FlatEntry {
  int64_t parameter = 0;  // index in the declared list
  Box box;                // what this rank's tensor coordinate holds of it
  Range range;            // elements in the flat buffer
  int64_t bucket = 0;
};

struct FlatBucket {
  Range range;                  // elements, padding included
  bool tensor_partial = false;  // gradients are summed over the tensor axis first
  bool tied = false;            // gradients are summed over the stages that share the parameter
  bool experts = false;         // shared by the ranks that have the same experts, not by all of the data axis
  int64_t first_unit = 0;       // gradients are final once backward has left this unit and those of the stage after it
  int64_t group = -1;           // in a layout by units
  int64_t shards = 1;           // equal parts that it is cut in
  int64_t shard_begin = 0;      // where its elements begin in a buffer that holds one shard of every bucket
};

struct FlatGroup {
  Range range;                 // elements in the flat buffer
  Range buckets;               // numbers of its buckets
  std::vector<int64_t> units;  // of the stage, ascending
  int64_t slot = 0;
};

struct FlatLayout {
  std::vector<FlatEntry> entries;  // ordered by range
  std::vector<FlatBucket> buckets;
  int64_t elements = 0;           // of the whole buffer, padding included
  int64_t shard_elements = 0;     // of one shard of every bucket
  std::vector<FlatGroup> groups;  // in a layout by units, else none
  std::vector<Range> slots;       // elements of the working buffer

  bool by_units() const { return !slots.empty(); }
  // Part of `bucket` that rank `shard` of those that share it owns.
  Range owned(const FlatBucket& bucket, int64_t shard) const;
  // Where they begin in the working buffer.
  int64_t working_begin(const FlatBucket& bucket) const;
  int64_t working_elements() const { return slots.empty() ? 0 : slots.back().end; }
};

// How experts lie over ranks: on `size` of them, this one the `index`-th, and in how many shards their buffers.
struct ExpertCut {
  int64_t size = 1;
  int64_t index = 0;
  int64_t shards = 1;
};

// The layout of `stage`. All stages are given, since a parameter is tied if its units lie in more than one of them.
// `bucket_mib` counts fp32 gradients; a layout by units has no use for it.
FlatLayout make_flat_layout(const std::vector<ParameterSpec>& parameters, const std::vector<StageUnits>& stages,
                            int64_t stage, int64_t tensor_size, int64_t tensor_index, int64_t shards, double bucket_mib,
                            bool by_units = false, const ExpertCut& experts = {});

// The layout that a strategy (whose `data` is derived) asks for, on coordinate `tensor_index` of the tensor axis and
// `expert_index` of the ranks that experts lie on. Its sizes are the same for all of the latter.
FlatLayout make_flat_layout(const std::vector<ParameterSpec>& parameters, const std::vector<StageUnits>& stages,
                            int64_t stage, int64_t tensor_index, const Strategy& strategy, int64_t expert_index = 0);

// True if a unit of the parameter lies in `stage`, and if its units lie in more than one of `stages`.
bool in_stage(const ParameterSpec& parameter, const StageUnits& stage);
bool is_tied(const ParameterSpec& parameter, const std::vector<StageUnits>& stages);

}  // namespace ridgeline::spec
