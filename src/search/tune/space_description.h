// [space] of a study: which values of each dimension of a strategy may be tried, and what is asked of them together.
//
//   [space]
//   preset = "none"                 # or "frontier-study": the space of Dash et al. 2023 for 175B
//   tensor = [1, 2, 4, 8]           # an empty list: whatever is legal
//   micro_batches = [5, 10]         # accumulation: then the global batch follows from it
//   recompute = "selective, full"   # names; empty: all
//   constraints = "tensor * pipeline <= 64 and micro_batch >= 4"
//
// Points are enumerated by the divisor chains of search/space.h, never proposed and thrown away by chance.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/schema.h"
#include "search/tune/points.h"
#include "spec/model.h"

namespace ridgeline::search {

struct SpaceDescription {
  std::string preset = "none";
  std::vector<int64_t> devices = {};  // empty: the study's number of devices
  std::vector<int64_t> tensor = {};
  std::vector<int64_t> pipeline = {};
  std::vector<int64_t> virtual_pipeline = {1};
  std::vector<int64_t> context = {1};
  std::string context_kind = "ring";        // names, comma-separated; empty: both
  std::vector<int64_t> expert = {};         // of models with experts
  std::vector<int64_t> expert_tensor = {};  // 0 (as tensor), 1
  std::vector<int64_t> micro_batch = {};
  std::vector<int64_t> micro_batches = {};  // of a replica; given: global_batch = micro_batches * data * micro_batch
  std::vector<int64_t> global_batch = {};   // empty: the study's
  std::vector<int64_t> zero_stage = {0, 1};
  std::string recompute;          // names, comma-separated; empty: all
  std::string sequence_parallel;  // "off", "on"; empty: both
  std::string schedule = "1f1b";  // "1f1b, gpipe, zero_bubble, zero_bubble_v"; empty: all
  std::string constraints;        // see search/tune/constraint.h; empty: none
};

// Declares the table [space]. `description` must outlive `schema`.
void bind(Schema& schema, SpaceDescription& description);

// What the study and the preset leave open is filled in; throws InputError for an unknown preset.
SpaceDescription with_preset(const SpaceDescription& description);

struct StudySize {
  int64_t devices = 1;
  int64_t devices_per_node = 1;  // for constraints on `nodes`
  int64_t global_batch = 1;
};

// Throws InputError (naming the key of [space]) where nothing is legal, or more than kMostPoints are.
inline constexpr size_t kMostPoints = 2'000'000;
PointSet enumerate(const SpaceDescription& description, const spec::ModelSpec& model, const StudySize& size);

}  // namespace ridgeline::search
