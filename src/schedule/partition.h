// Partition: which units of the model each global stage holds.
//
// A model is a row of units (spec/parameters.h): the embedding, the transformer layers, the head. A global stage holds
// a contiguous range of them; the first holds the embedding, the last the head, and every one at least one layer. The
// work of a unit is any number that adds up (FLOPs, seconds); cost/stages.h puts FLOPs in.
#pragma once

#include <cstdint>
#include <vector>

#include "spec/placement.h"

namespace ridgeline::schedule {

// The partition of least work on its fullest stage; among those the one of least sum of squares (the most even); among
// those, to rounding, the one with fewest layers in the earliest stages, which keep the most micro-batches in flight.
// Exact where all layers have equal work, as those of most models: O(layers log stages). With layers of unequal work
// the least fullest stage is exact too, the choice among equals as long as there are few enough to look at (128 layers
// on 128 stages are); beyond, stages are filled from the last one backwards. Memory is linear in layers + stages but
// for that bounded choice. Throws InputError where there are more stages than layers.
std::vector<spec::Range> partition_units(const std::vector<double>& unit_work, int64_t stages);

// The partition with the given number of layers in each stage. Throws InputError where one is below one.
std::vector<spec::Range> partition_explicit(const std::vector<int64_t>& stage_layers);

}  // namespace ridgeline::schedule
