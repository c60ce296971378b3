// How long a kernel takes on a device: the roofline with an efficiency by shape.
//
// A product takes max(FLOPs / (peak * efficiency), bytes / bandwidth, launch), with
//   efficiency = product_efficiency * k / (k + half_depth) * t / (t + half_tokens) * fill,   t = min(m, n)
// fill is the share of the tiles' area that holds results in the waves that the compute units run, for the best of a
// few tile sizes (smaller tiles load more operands and reach less). The constants are the stack's (spec/machine.h).
// What the machine's table of shapes says (simulate/shape_factor.h) is multiplied to the time of the FLOPs.
#pragma once

#include <vector>

#include "cost/kernels.h"
#include "spec/machine.h"

namespace ridgeline::simulate {

// 0 to 1, of the device's peak; batched products share the waves.
double product_efficiency(const spec::Machine& machine, int64_t batch, int64_t m, int64_t n, int64_t k);

double kernel_seconds(const spec::Machine& machine, spec::Precision compute, const cost::Kernel& kernel);
double kernels_seconds(const spec::Machine& machine, spec::Precision compute, const std::vector<cost::Kernel>& kernels);

}  // namespace ridgeline::simulate
