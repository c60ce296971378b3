#include "search/surrogate/fit_kernel.h"

#include <Eigen/Cholesky>
#include <cmath>
#include <limits>

#include "core/error.h"

namespace ridgeline::search {
namespace {

constexpr double kShortest = 0.1, kLongest = 10;
constexpr int kSweeps = 3;

// Lengths and weights are scales: without data their logarithms are normal around the start.
double log_prior(const KernelShape& shape, const KernelShape& start) {
  double sum = 0;
  const auto add = [&](double value, double around, double width) {
    const double distance = std::log(value / around) / width;
    sum -= 0.5 * distance * distance;
  };
  for (size_t d = 0; d < shape.lengths.size(); ++d) add(shape.lengths[d], start.lengths[d], 1.0);
  add(shape.linear, start.linear, 1.5);
  add(shape.additive, start.additive, 1.5);
  add(shape.pairs, start.pairs, 1.5);
  add(shape.product, start.product, 1.5);
  add(shape.noise, start.noise, 2.0);
  return sum;
}

}  // namespace

double log_evidence(const std::vector<LevelAxis>& axes, const KernelShape& shape, const Observations& observations,
                    double prior_scale) {
  const LevelKernel kernel(axes, shape);
  const size_t dimensions = axes.size();
  const auto count = static_cast<Eigen::Index>(observations.size());
  Eigen::MatrixXd covariance(count, count);  // the lower half
  for (Eigen::Index j = 0; j < count; ++j) {
    const uint16_t* right = observations.levels.data() + static_cast<size_t>(j) * dimensions;
    covariance(j, j) = kernel.variance(right) + kernel.noise();
    for (Eigen::Index i = j + 1; i < count; ++i) {
      covariance(i, j) = kernel(observations.levels.data() + static_cast<size_t>(i) * dimensions, right);
    }
  }
  const Eigen::LLT<Eigen::MatrixXd> factor(covariance);
  if (factor.info() != Eigen::Success) return -std::numeric_limits<double>::infinity();
  const double log_determinant = 2 * Eigen::MatrixXd(factor.matrixL()).diagonal().array().log().sum();
  const double squares =
      factor.matrixL().solve(Eigen::Map<const Eigen::VectorXd>(observations.values.data(), count)).squaredNorm();
  const double weight = kPriorWeight + static_cast<double>(count);
  return -0.5 * (log_determinant + weight * std::log(kPriorWeight * prior_scale * prior_scale + squares));
}

KernelShape fit_kernel(const std::vector<LevelAxis>& axes, const KernelShape& shape, const Observations& observations,
                       double prior_scale) {
  RIDGELINE_ASSERT(observations.levels.size() == observations.size() * axes.size());
  KernelShape best = shape;
  const auto score = [&](const KernelShape& candidate) {
    return log_evidence(axes, candidate, observations, prior_scale) + log_prior(candidate, shape);
  };
  double best_score = score(best);
  const auto try_factor = [&](double KernelShape::* weight, size_t dimension, double factor, double low, double high) {
    KernelShape candidate = best;
    double& value = weight == nullptr ? candidate.lengths[dimension] : candidate.*weight;
    value *= factor;
    if (value < low || value > high) return false;
    const double candidate_score = score(candidate);
    if (!(candidate_score > best_score)) return false;
    best = candidate;
    best_score = candidate_score;
    return true;
  };
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    bool changed = false;
    for (size_t d = 0; d < axes.size(); ++d) {
      changed |= try_factor(nullptr, d, 2, kShortest, kLongest) || try_factor(nullptr, d, 0.5, kShortest, kLongest);
    }
    for (const auto weight : {&KernelShape::noise, &KernelShape::linear, &KernelShape::additive, &KernelShape::pairs,
                              &KernelShape::product}) {
      const double low = weight == &KernelShape::noise ? shape.noise : 1e-3;
      changed |= try_factor(weight, 0, 3, low, 100) || try_factor(weight, 0, 1 / 3.0, low, 100);
    }
    if (!changed) break;
  }
  return best;
}

}  // namespace ridgeline::search
