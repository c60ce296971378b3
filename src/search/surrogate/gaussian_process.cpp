#include "search/surrogate/gaussian_process.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "search/surrogate/fit_kernel.h"

namespace ridgeline::search {

GaussianProcess::GaussianProcess(const LevelKernel& kernel, std::shared_ptr<const LevelColumns> candidates)
    : kernel_(kernel), candidates_(std::move(candidates)) {
  const size_t count = candidates_->empty() ? 1 : candidates_->front().size();
  explained_.assign(count, 0);
  mean_.assign(count, 0);
  for (size_t i = 0; i < count; ++i) {
    prior_variance_.push_back(static_cast<float>(kernel_.variance(candidate_levels(i).data())));
  }
}

std::vector<uint16_t> GaussianProcess::candidate_levels(size_t candidate) const {
  std::vector<uint16_t> levels;
  for (const auto& column : *candidates_) levels.push_back(column[candidate]);
  return levels;
}

void GaussianProcess::add(std::span<const uint16_t> levels, double value) {
  RIDGELINE_ASSERT(levels.size() == candidates_->size());
  const size_t count = size();
  std::vector<double> row(count);
  double diagonal = kernel_.variance(levels.data()) + kernel_.noise();
  for (size_t i = 0; i < count; ++i) {
    double sum = kernel_(levels.data(), observed_[i].data());
    for (size_t j = 0; j < i; ++j) sum -= factor_[i][j] * row[j];
    row[i] = sum / diagonal_[i];
    diagonal -= row[i] * row[i];
    value -= row[i] * white_[i];
  }
  diagonal = std::sqrt(std::max(diagonal, 0.1 * kernel_.noise()));
  std::vector<float> projected(candidates());
  kernel_.row(levels.data(), *candidates_, projected);
  for (size_t i = 0; i < count; ++i) {
    const float factor = static_cast<float>(row[i]);
    const float* other = projected_[i].data();
    float* own = projected.data();
    for (size_t c = 0; c < projected.size(); ++c) own[c] -= factor * other[c];
  }
  const float inverse = static_cast<float>(1 / diagonal), white = static_cast<float>(value / diagonal);
  for (size_t c = 0; c < projected.size(); ++c) {
    projected[c] *= inverse;
    explained_[c] += projected[c] * projected[c];
    mean_[c] += white * projected[c];
  }
  observed_.emplace_back(levels.begin(), levels.end());
  factor_.push_back(std::move(row));
  diagonal_.push_back(diagonal);
  white_.push_back(value / diagonal);
  projected_.push_back(std::move(projected));
}

Posterior GaussianProcess::posterior(double prior_scale) const {
  double squares = 0;
  for (const double white : white_) squares += white * white;
  const double weight = kPriorWeight + static_cast<double>(size());
  Posterior posterior;
  posterior.scale = std::sqrt((kPriorWeight * prior_scale * prior_scale + squares) / weight);
  posterior.mean = mean_;
  posterior.deviation = relative_deviations();
  for (float& deviation : posterior.deviation) deviation *= static_cast<float>(posterior.scale);
  return posterior;
}

std::vector<float> GaussianProcess::relative_deviations() const {
  std::vector<float> result(candidates());
  for (size_t c = 0; c < candidates(); ++c) {
    result[c] = std::sqrt(std::max(prior_variance_[c] - explained_[c], 1e-6f * prior_variance_[c]));
  }
  return result;
}

std::vector<double> GaussianProcess::whiten(std::span<const double> values) const {
  RIDGELINE_ASSERT(values.size() == size());
  std::vector<double> result(size());
  for (size_t i = 0; i < size(); ++i) {
    double sum = values[i];
    for (size_t j = 0; j < i; ++j) sum -= factor_[i][j] * result[j];
    result[i] = sum / diagonal_[i];
  }
  return result;
}

std::vector<float> GaussianProcess::mean_of(std::span<const double> values) const {
  const std::vector<double> white = whiten(values);
  std::vector<float> result(candidates(), 0);
  for (size_t i = 0; i < size(); ++i) {
    const float factor = static_cast<float>(white[i]);
    const float* projected = projected_[i].data();
    for (size_t c = 0; c < result.size(); ++c) result[c] += factor * projected[c];
  }
  return result;
}

// K (K + noise)^-1 y = y - noise (K + noise)^-1 y.
std::vector<double> GaussianProcess::smoothed(std::span<const double> values) const {
  std::vector<double> solved = whiten(values);
  for (size_t i = size(); i-- > 0;) {
    solved[i] /= diagonal_[i];
    for (size_t j = 0; j < i; ++j) solved[j] -= factor_[i][j] * solved[i];
  }
  std::vector<double> result(values.begin(), values.end());
  for (size_t i = 0; i < size(); ++i) result[i] -= kernel_.noise() * solved[i];
  return result;
}

std::vector<float> GaussianProcess::covariance(std::span<const size_t> left, std::span<const size_t> right) const {
  std::vector<float> result(left.size() * right.size());
  std::vector<std::vector<uint16_t>> right_levels;
  for (const size_t candidate : right) right_levels.push_back(candidate_levels(candidate));
  for (size_t i = 0; i < left.size(); ++i) {
    const std::vector<uint16_t> levels = candidate_levels(left[i]);
    for (size_t j = 0; j < right.size(); ++j) {
      result[i * right.size() + j] = static_cast<float>(kernel_(levels.data(), right_levels[j].data()));
    }
  }
  std::vector<float> gathered(right.size());
  for (const std::vector<float>& projected : projected_) {
    for (size_t j = 0; j < right.size(); ++j) gathered[j] = projected[right[j]];
    for (size_t i = 0; i < left.size(); ++i) {
      const float factor = projected[left[i]];
      float* row = result.data() + i * right.size();
      for (size_t j = 0; j < right.size(); ++j) row[j] -= factor * gathered[j];
    }
  }
  return result;
}

}  // namespace ridgeline::search
