#include "search/surrogate/gaussian_process.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "search/surrogate/fit_kernel.h"

namespace ridgeline::search {
namespace {

constexpr Eigen::Index kFirstRoom = 32;  // observations; doubled whenever it is used up

}  // namespace

GaussianProcess::GaussianProcess(const LevelKernel& kernel, std::shared_ptr<const LevelColumns> candidates)
    : kernel_(kernel), candidates_(std::move(candidates)) {
  const size_t count = candidates_->empty() ? 1 : candidates_->front().size();
  const auto rows = static_cast<Eigen::Index>(count);
  explained_ = mean_ = Eigen::VectorXf::Zero(rows);
  prior_variance_.resize(rows);
  for (size_t i = 0; i < count; ++i) {
    prior_variance_(static_cast<Eigen::Index>(i)) = static_cast<float>(kernel_.variance(candidate_levels(i).data()));
  }
  reserve(kFirstRoom);
}

void GaussianProcess::reserve(Eigen::Index observations) {
  factor_.conservativeResize(observations, observations);
  white_.conservativeResize(observations);
  projected_.conservativeResize(explained_.size(), observations);
}

std::vector<uint16_t> GaussianProcess::candidate_levels(size_t candidate) const {
  std::vector<uint16_t> levels;
  for (const auto& column : *candidates_) levels.push_back(column[candidate]);
  return levels;
}

// The factor grows by a row, which is the solution of the triangle that was there.
void GaussianProcess::add(std::span<const uint16_t> levels, double value) {
  RIDGELINE_ASSERT(levels.size() == candidates_->size());
  const Eigen::Index n = count();
  if (n == factor_.rows()) reserve(2 * n);
  Eigen::VectorXd row(n);
  for (Eigen::Index i = 0; i < n; ++i) row(i) = kernel_(levels.data(), observed_[static_cast<size_t>(i)].data());
  factor().solveInPlace(row);
  const double left = kernel_.variance(levels.data()) + kernel_.noise() - row.squaredNorm();
  const double diagonal = std::sqrt(std::max(left, 0.1 * kernel_.noise()));
  const double white = (value - row.dot(white_.head(n))) / diagonal;
  auto column = projected_.col(n);
  kernel_.row(levels.data(), *candidates_, {column.data(), candidates()});
  column.noalias() -= projected() * row.cast<float>();
  column /= static_cast<float>(diagonal);
  explained_ += column.cwiseAbs2();
  mean_ += static_cast<float>(white) * column;
  factor_.row(n).head(n) = row.transpose();
  factor_(n, n) = diagonal;
  white_(n) = white;
  observed_.emplace_back(levels.begin(), levels.end());
}

Posterior GaussianProcess::posterior(double prior_scale) const {
  const double weight = kPriorWeight + static_cast<double>(size());
  Posterior posterior;
  posterior.scale =
      std::sqrt((kPriorWeight * prior_scale * prior_scale + white_.head(count()).squaredNorm()) / weight);
  posterior.mean.assign(mean_.begin(), mean_.end());
  posterior.deviation = relative_deviations();
  for (float& deviation : posterior.deviation) deviation *= static_cast<float>(posterior.scale);
  return posterior;
}

std::vector<float> GaussianProcess::relative_deviations() const {
  const Eigen::VectorXf result = (prior_variance_ - explained_).cwiseMax(1e-6f * prior_variance_).cwiseSqrt();
  return {result.begin(), result.end()};
}

Eigen::VectorXd GaussianProcess::whiten(std::span<const double> values) const {
  RIDGELINE_ASSERT(values.size() == size());
  return factor().solve(Eigen::Map<const Eigen::VectorXd>(values.data(), count()));
}

std::vector<float> GaussianProcess::mean_of(std::span<const double> values) const {
  const Eigen::VectorXf result = projected() * whiten(values).cast<float>();
  return {result.begin(), result.end()};
}

// K (K + noise)^-1 y = y - noise (K + noise)^-1 y.
std::vector<double> GaussianProcess::smoothed(std::span<const double> values) const {
  const Eigen::VectorXd solved = factor().transpose().solve(whiten(values));
  const Eigen::VectorXd result = Eigen::Map<const Eigen::VectorXd>(values.data(), count()) - kernel_.noise() * solved;
  return {result.begin(), result.end()};
}

std::vector<float> GaussianProcess::covariance(std::span<const size_t> left, std::span<const size_t> right) const {
  using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  std::vector<float> result(left.size() * right.size());
  std::vector<std::vector<uint16_t>> right_levels;
  for (const size_t candidate : right) right_levels.push_back(candidate_levels(candidate));
  for (size_t i = 0; i < left.size(); ++i) {
    const std::vector<uint16_t> levels = candidate_levels(left[i]);
    for (size_t j = 0; j < right.size(); ++j) {
      result[i * right.size() + j] = static_cast<float>(kernel_(levels.data(), right_levels[j].data()));
    }
  }
  const auto rows_of = [&](std::span<const size_t> places) {
    Eigen::MatrixXf rows(static_cast<Eigen::Index>(places.size()), count());
    for (size_t i = 0; i < places.size(); ++i) {
      rows.row(static_cast<Eigen::Index>(i)) = projected().row(static_cast<Eigen::Index>(places[i]));
    }
    return rows;
  };
  Eigen::Map<RowMajor>(result.data(), static_cast<Eigen::Index>(left.size()), static_cast<Eigen::Index>(right.size()))
      .noalias() -= rows_of(left) * rows_of(right).transpose();
  return result;
}

}  // namespace ridgeline::search
