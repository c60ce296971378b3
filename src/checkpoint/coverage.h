// Whether pieces of a tensor add up to what is wanted of it.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "checkpoint/slice.h"

namespace ridgeline::checkpoint {

// A box of `wanted` that no piece holds, or nothing where the pieces cover all of it. Pieces may overlap.
std::optional<spec::Box> first_gap(const Slice& wanted, std::span<const Slice> pieces);

// A box that two of the pieces both hold, or nothing where they are disjoint.
std::optional<spec::Box> first_overlap(std::span<const Slice> pieces);

}  // namespace ridgeline::checkpoint
