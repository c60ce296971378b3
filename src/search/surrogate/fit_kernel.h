// Which kernel suits observations: the one of the largest posterior density on a grid, found dimension by dimension.
//
// The common variance is integrated out: with an inverse gamma prior of `kPriorWeight` observations of standard
// deviation `prior_scale`, n observations y (prior mean subtracted) and their relative covariance K, the density of y
// is proportional to |K|^(-1/2) (w s^2 + y' K^-1 y)^(-(w + n) / 2): Student's t.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "search/surrogate/level_kernel.h"

namespace ridgeline::search {

inline constexpr double kPriorWeight = 4;

// What is observed where: levels [observation, dimension], and values.
struct Observations {
  std::vector<uint16_t> levels;
  std::vector<double> values;
  size_t size() const { return values.size(); }
};

// Starts from `shape`, whose noise is a lower bound. A function of its arguments alone; cost grows with the cube of the
// number of observations.
KernelShape fit_kernel(const std::vector<LevelAxis>& axes, const KernelShape& shape, const Observations& observations,
                       double prior_scale);

// Log density of the observations under `shape`, but for a constant.
double log_evidence(const std::vector<LevelAxis>& axes, const KernelShape& shape, const Observations& observations,
                    double prior_scale);

}  // namespace ridgeline::search
