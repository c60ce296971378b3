// Initial values by counter: element i of a parameter depends on (seed, name, i) alone, so a shard is a slice of the whole.
#pragma once

#include <ATen/ATen.h>

#include "spec/parameters.h"

namespace ridgeline::nn {

// fp32 on the CPU, shaped as `box`.
at::Tensor initial_value(const spec::ParameterSpec& parameter, const spec::Box& box, uint64_t seed);

}  // namespace ridgeline::nn
