// A Gaussian process over a fixed list of candidates that takes observations one at a time.
//
// Adding the n-th observation to C candidates costs about n (n + C) operations: the factor of the observations'
// covariance grows by a row, and with it each candidate's mean and the part of its variance that is explained.
//
// Variances are relative to a common one, which `posterior` estimates (see fit_kernel.h).
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "search/surrogate/level_kernel.h"

namespace ridgeline::search {

struct Posterior {
  std::vector<float> mean;       // of each candidate
  std::vector<float> deviation;  // standard deviation, without noise
  double scale = 1;              // standard deviation that relative variances are in
};

class GaussianProcess {
 public:
  GaussianProcess(const LevelKernel& kernel, std::shared_ptr<const LevelColumns> candidates);

  // `levels` of the observed point, which need not be a candidate; `value` less its prior mean.
  void add(std::span<const uint16_t> levels, double value);
  size_t size() const { return observed_.size(); }
  size_t candidates() const { return static_cast<size_t>(explained_.size()); }

  Posterior posterior(double prior_scale) const;
  // As if other values had been observed: means of the candidates, and at the observed points themselves.
  std::vector<float> mean_of(std::span<const double> values) const;
  std::vector<double> smoothed(std::span<const double> values) const;
  std::vector<float> relative_deviations() const;
  // Relative covariance, given the observations, of each of `left` with each of `right` (places among the candidates),
  // row by row.
  std::vector<float> covariance(std::span<const size_t> left, std::span<const size_t> right) const;
  double noise() const { return kernel_.noise(); }

 private:
  void reserve(Eigen::Index observations);
  // The lower factor of the observations' covariance, and candidates' covariances with them, whitened by it.
  const auto factor() const { return factor_.topLeftCorner(count(), count()).triangularView<Eigen::Lower>(); }
  auto projected() const { return projected_.leftCols(count()); }
  Eigen::Index count() const { return static_cast<Eigen::Index>(observed_.size()); }
  Eigen::VectorXd whiten(std::span<const double> values) const;
  std::vector<uint16_t> candidate_levels(size_t candidate) const;

  LevelKernel kernel_;
  std::shared_ptr<const LevelColumns> candidates_;
  std::vector<std::vector<uint16_t>> observed_;
  Eigen::MatrixXd factor_;     // with room for more observations
  Eigen::VectorXd white_;      // inverse factor times the values
  Eigen::MatrixXf projected_;  // [candidate, observation]: inverse factor times cross-covariance
  Eigen::VectorXf prior_variance_, explained_, mean_;
};

}  // namespace ridgeline::search
