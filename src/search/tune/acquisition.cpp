#include "search/tune/acquisition.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace ridgeline::search {

double log_expected_improvement(double best, double mean, double deviation) {
  const double z = (best - mean) / deviation;
  constexpr double kLogRootTwoPi = 0.9189385332046727;
  if (z > -6) {
    const double density = std::exp(-0.5 * z * z - kLogRootTwoPi);
    const double share = 0.5 * std::erfc(-z / std::sqrt(2.0));
    return std::log(deviation) + std::log(density + z * share);
  }
  // density + z share = density / z^2 (1 - 3 / z^2 + 15 / z^4 ...) for large -z.
  return std::log(deviation) - 0.5 * z * z - kLogRootTwoPi - 2 * std::log(-z) +
         std::log1p(-3 / (z * z) + 15 / (z * z * z * z));
}

void condition_on_pending(std::vector<double> pending, std::vector<double> cross, double noise,
                          std::vector<double>& variances) {
  const size_t points = variances.size();
  const size_t count = points == 0 ? 0 : cross.size() / points;
  RIDGELINE_ASSERT(pending.size() == count * count && cross.size() == count * points);
  // One pending point after the other, as a sweep of Gaussian elimination.
  for (size_t q = 0; q < count; ++q) {
    const double inverse = 1 / (std::max(pending[q * count + q], 0.0) + noise);
    const double* row = cross.data() + q * points;
    for (size_t i = 0; i < points; ++i) variances[i] -= row[i] * row[i] * inverse;
    for (size_t later = q + 1; later < count; ++later) {
      const double factor = pending[later * count + q] * inverse;
      double* other = cross.data() + later * points;
      for (size_t i = 0; i < points; ++i) other[i] -= factor * row[i];
      for (size_t k = q + 1; k < count; ++k) pending[later * count + k] -= factor * pending[q * count + k];
    }
  }
}

}  // namespace ridgeline::search
