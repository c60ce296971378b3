// The process that grows by observations against the textbook formulas, solved densely.
#include "search/surrogate/gaussian_process.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "search/surrogate/process_model.h"
#include "search/surrogate/sign_model.h"
#include "search/tune/acquisition.h"

namespace ridgeline::search {
namespace {

std::vector<LevelAxis> axes() { return {{{0, 1, 2, 3}, false}, {{0, 1, 2}, true}, {{0, 1, 2, 3, 4}, false}}; }

KernelShape shape() {
  KernelShape shape;
  shape.lengths = {0.8, 1.0, 0.5};
  shape.product = 0.7;
  shape.noise = 0.01;
  return shape;
}

std::vector<std::vector<uint16_t>> all_points() {
  std::vector<std::vector<uint16_t>> points;
  for (uint16_t a = 0; a < 4; ++a)
    for (uint16_t b = 0; b < 3; ++b)
      for (uint16_t c = 0; c < 5; ++c) points.push_back({a, b, c});
  return points;
}

std::shared_ptr<const LevelColumns> columns(const std::vector<std::vector<uint16_t>>& points) {
  auto result = std::make_shared<LevelColumns>(3);
  for (const auto& point : points)
    for (size_t d = 0; d < 3; ++d) (*result)[d].push_back(point[d]);
  return result;
}

// Solves matrix x = right by elimination with pivots.
std::vector<double> solve(std::vector<std::vector<double>> matrix, std::vector<double> right) {
  const size_t count = right.size();
  for (size_t i = 0; i < count; ++i) {
    size_t pivot = i;
    for (size_t r = i + 1; r < count; ++r)
      if (std::abs(matrix[r][i]) > std::abs(matrix[pivot][i])) pivot = r;
    std::swap(matrix[i], matrix[pivot]);
    std::swap(right[i], right[pivot]);
    for (size_t r = 0; r < count; ++r) {
      if (r == i) continue;
      const double factor = matrix[r][i] / matrix[i][i];
      for (size_t c = i; c < count; ++c) matrix[r][c] -= factor * matrix[i][c];
      right[r] -= factor * right[i];
    }
  }
  for (size_t i = 0; i < count; ++i) right[i] /= matrix[i][i];
  return right;
}

class Process : public testing::Test {
 protected:
  Process() {
    std::mt19937 generator(3);
    for (int i = 0; i < 12; ++i) {
      observed_.push_back(points_[generator() % points_.size()]);
      values_.push_back(std::sin(1.0 + i) + 0.3 * observed_.back()[0]);
      process_.add(observed_.back(), values_.back());
    }
  }

  // K^-1 k(observed, point), with noise on the diagonal.
  std::vector<double> weights(const std::vector<uint16_t>& point) const {
    std::vector<std::vector<double>> matrix(observed_.size(), std::vector<double>(observed_.size()));
    std::vector<double> cross;
    for (size_t i = 0; i < observed_.size(); ++i) {
      for (size_t j = 0; j < observed_.size(); ++j) matrix[i][j] = kernel_(observed_[i].data(), observed_[j].data());
      matrix[i][i] += 0.01;
      cross.push_back(kernel_(observed_[i].data(), point.data()));
    }
    return solve(matrix, cross);
  }

  double covariance(size_t left, size_t right) const {
    const std::vector<double> solved = weights(points_[left]);
    double result = kernel_(points_[left].data(), points_[right].data());
    for (size_t i = 0; i < observed_.size(); ++i) {
      result -= solved[i] * kernel_(observed_[i].data(), points_[right].data());
    }
    return result;
  }

  std::vector<std::vector<uint16_t>> points_ = all_points(), observed_;
  std::vector<double> values_;
  LevelKernel kernel_{axes(), shape()};
  GaussianProcess process_{kernel_, columns(points_)};
};

TEST_F(Process, MeanAndDeviationAreThoseOfTheDenseSolution) {
  const Posterior posterior = process_.posterior(0.5);
  for (size_t c = 0; c < points_.size(); ++c) {
    const std::vector<double> solved = weights(points_[c]);
    double mean = 0;
    for (size_t i = 0; i < values_.size(); ++i) mean += solved[i] * values_[i];
    EXPECT_NEAR(posterior.mean[c], mean, 2e-4);
    EXPECT_NEAR(posterior.deviation[c] / posterior.scale, std::sqrt(covariance(c, c)), 2e-3);
  }
}

TEST_F(Process, CovarianceIsThatOfTheDenseSolution) {
  const std::vector<size_t> left = {0, 17, 30}, right = {5, 17};
  const std::vector<float> found = process_.covariance(left, right);
  for (size_t i = 0; i < left.size(); ++i) {
    for (size_t j = 0; j < right.size(); ++j) {
      EXPECT_NEAR(found[i * right.size() + j], covariance(left[i], right[j]), 1e-4);
    }
  }
}

TEST_F(Process, PendingPointsShrinkVariancesAsObservationsDo) {
  const std::vector<size_t> pending = {4, 33, 34}, places = {0, 5, 35, 59};
  const auto widened = [](const std::vector<float>& values) {
    return std::vector<double>(values.begin(), values.end());
  };
  std::vector<double> variances;
  for (const size_t place : places) variances.push_back(covariance(place, place));
  condition_on_pending(widened(process_.covariance(pending, pending)), widened(process_.covariance(pending, places)),
                       0.01, variances);
  for (const size_t point : pending) process_.add(points_[point], 0);
  for (size_t i = 0; i < places.size(); ++i) {
    const std::vector<size_t> place = {places[i]};
    EXPECT_NEAR(variances[i], process_.covariance(place, place)[0], 1e-4);
  }
}

TEST_F(Process, SmoothedIsTheMeanAtTheObservedPoints) {
  const std::vector<double> smoothed = process_.smoothed(values_);
  const std::vector<float> means = process_.mean_of(values_);
  const Posterior posterior = process_.posterior(0.5);
  for (size_t i = 0; i < values_.size(); ++i) {
    const auto place = std::find(points_.begin(), points_.end(), observed_[i]) - points_.begin();
    EXPECT_NEAR(smoothed[i], means[place], 1e-3);
    EXPECT_NEAR(means[place], posterior.mean[place], 1e-4);
  }
}

TEST(SignModel, ContinuesATrendBeyondWhatItSaw) {
  SignModel model(axes(), shape());
  const auto points = all_points();
  model.look_at(columns(points));
  // Of the third dimension only the lower levels are seen: 0 and 1 are fine, 2 fails.
  for (int round = 0; round < 2; ++round) {
    for (const auto& point : points) {
      if (point[2] <= 2 && (point[0] + point[1]) % 2 == 0) model.add(point, point[2] < 2);
    }
  }
  const std::vector<double>& found = model.probabilities();
  for (size_t i = 0; i < points.size(); ++i) {
    if (points[i][2] == 0) {
      EXPECT_GT(found[i], 0.8);
    } else if (points[i][2] >= 3) {
      EXPECT_LT(found[i], 0.3);
    }
  }
  EXPECT_EQ(model.probabilities_of(columns(points)), found);
}

TEST(FitKernel, FindsTheDimensionThatMatters) {
  Observations observations;
  for (const auto& point : all_points()) {
    observations.levels.insert(observations.levels.end(), point.begin(), point.end());
    observations.values.push_back(std::sin(2.5 * point[2]));
  }
  KernelShape start = shape();
  start.lengths = {1, 1, 1};
  const KernelShape fitted = fit_kernel(axes(), start, observations, 0.5);
  EXPECT_LT(fitted.lengths[2], fitted.lengths[0]);
  EXPECT_GT(log_evidence(axes(), fitted, observations, 0.5), log_evidence(axes(), start, observations, 0.5));
}

TEST(ProcessModel, SaysTheSameHoweverOftenItWasAsked) {
  const auto points = all_points();
  ProcessModel asked(axes(), shape(), 0.5), silent(axes(), shape(), 0.5);
  asked.look_at(columns(points));
  silent.look_at(columns(points));
  for (size_t i = 0; i < 40; ++i) {
    const auto& point = points[i * 7 % points.size()];
    const double value = std::cos(static_cast<double>(i));
    asked.add(point, value);
    silent.add(point, value);
    asked.posterior();
  }
  EXPECT_EQ(asked.posterior().mean, silent.posterior().mean);
  EXPECT_EQ(asked.posterior().deviation, silent.posterior().deviation);
}

TEST(ExpectedImprovement, IsSmoothWhereItsFormChanges) {
  EXPECT_NEAR(log_expected_improvement(0, 0, 1), std::log(0.3989422804), 1e-9);
  EXPECT_NEAR(log_expected_improvement(0, 5.999, 1), log_expected_improvement(0, 6.001, 1), 0.02);
  EXPECT_GT(log_expected_improvement(0, 50, 1), log_expected_improvement(0, 60, 1));
  EXPECT_TRUE(std::isfinite(log_expected_improvement(0, 1e4, 1)));
}

}  // namespace
}  // namespace ridgeline::search
