// What a machine's table of shapes (spec/shape_rates.h) says of one shape: the factor that its time is multiplied by.
//
// A listed shape has its own factor. Any other takes a weighted mean of the logarithms of the listed ones of its kind,
//   log f(x) = sum_i w_i log f_i / (sum_i w_i + 1),   w_i = exp(-|x - x_i|^2 / (2 l^2))
// over the logarithms of its sizes, so far from all that is listed the factor is 1: the formulas alone.
#pragma once

#include <cstdint>

#include "cost/kernels.h"
#include "spec/machine.h"

namespace ridgeline::simulate {

// Scale l of the logarithms: sizes that differ by a factor of 1.5 are near, by 3 hardly so. The calibration's prior
// (simulate/calibration.h) takes the same.
inline constexpr double kShapeScale = 0.5;

double product_factor(const spec::ShapeRates& rates, int64_t batch, int64_t m, int64_t n, int64_t k);
double collective_factor(const spec::ShapeRates& rates, cost::MessageKind kind, int64_t ranks, int64_t per_node,
                         double bytes);

// How alike two shapes are, 0 to 1; collectives of different kinds are not alike.
double likeness(const spec::ProductRate& a, const spec::ProductRate& b);
double likeness(const spec::CollectiveRate& a, const spec::CollectiveRate& b);

const char* to_string(cost::MessageKind kind);

}  // namespace ridgeline::simulate
