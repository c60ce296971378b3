// How much a trial is expected to bring: expected improvement, on log(cost), of points under a Gaussian posterior.
#pragma once

#include <vector>

namespace ridgeline::search {

// log E[max(0, best - f)] for f ~ N(mean, deviation^2); finite also where the expectation is below the smallest double.
double log_expected_improvement(double best, double mean, double deviation);

// Variances of `count` points once others (pending) will have been observed where the posterior mean is: `covariance`
// of the pending ones with each other [pending, pending] and with the points [pending, count], without noise;
// `variances` [count] are updated.
void condition_on_pending(const std::vector<double>& pending, const std::vector<double>& cross, double noise,
                          std::vector<double>& variances);

}  // namespace ridgeline::search
