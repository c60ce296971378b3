#include "study/steady_state.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

namespace ridgeline::study {
namespace {

constexpr size_t kLeastSteps = 4;      // fewer cannot be split
constexpr double kChangePrice = 3;     // parameters that a second level costs: its place, its height, its noise
constexpr double kFinestNoise = 1e-4;  // of log time; equal times must not make the likelihood infinite

double median_of(std::vector<double> values) {
  const size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle), values.end());
  if (values.size() % 2 == 1) return values[middle];
  const double upper = values[middle];
  return (upper + *std::max_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle))) / 2;
}

double absolute_deviation(std::span<const double> values) {
  const double center = median_of({values.begin(), values.end()});
  double sum = 0;
  for (const double value : values) sum += std::abs(value - center);
  return sum;
}

// The number of first steps that form a level of their own, 0 where none do.
size_t change_point(std::span<const double> logs) {
  const size_t count = logs.size();
  if (count < kLeastSteps) return 0;
  const double n = static_cast<double>(count);
  const double floor = kFinestNoise * n;
  size_t best = 0;
  double best_deviation = std::numeric_limits<double>::infinity();
  for (size_t split = 1; split <= count / 2; ++split) {
    const double deviation = absolute_deviation(logs.first(split)) + absolute_deviation(logs.subspan(split));
    if (deviation < best_deviation) {
      best_deviation = deviation;
      best = split;
    }
  }
  const double gain = n * std::log((absolute_deviation(logs) + floor) / (best_deviation + floor));
  return gain > kChangePrice / 2 * std::log(n) + kChangePrice ? best : 0;
}

// P(X <= k) for X ~ Binomial(n, 1/2).
double binomial_tail(size_t n, size_t k) {
  double sum = 0;
  for (size_t i = 0; i <= k; ++i) {
    sum += std::exp(std::lgamma(static_cast<double>(n) + 1) - std::lgamma(static_cast<double>(i) + 1) -
                    std::lgamma(static_cast<double>(n - i) + 1) - static_cast<double>(n) * std::log(2.0));
  }
  return sum;
}

}  // namespace

MedianInterval median_interval(std::vector<double> samples, double confidence) {
  if (samples.empty()) return {0, 0, std::numeric_limits<double>::infinity()};
  std::sort(samples.begin(), samples.end());
  const size_t n = samples.size();
  const double median = median_of(samples);
  const double tail = (1 - confidence) / 2;
  if (binomial_tail(n, 0) > tail) return {median, 0, std::numeric_limits<double>::infinity()};
  size_t below = 0;  // samples left out at each end
  while (2 * (below + 1) < n && binomial_tail(n, below + 1) <= tail) ++below;
  return {median, samples[below], samples[n - 1 - below]};
}

bool SteadyState::is_tight(double tolerance) const {
  return seconds.median > 0 && (seconds.high - seconds.low) / 2 <= tolerance * seconds.median;
}

SteadyState steady_state(const std::vector<double>& seconds) {
  std::vector<double> logs;
  for (const double value : seconds) logs.push_back(std::log(std::max(value, 1e-12)));
  SteadyState state;
  while (const size_t more = change_point(std::span<const double>(logs).subspan(state.dropped))) state.dropped += more;
  state.steps = seconds.size() - state.dropped;
  state.seconds = median_interval({seconds.begin() + static_cast<std::ptrdiff_t>(state.dropped), seconds.end()});
  return state;
}

bool surely_above(const std::vector<double>& seconds, size_t dropped, double bound) {
  std::vector<double> steady(seconds.begin() + static_cast<std::ptrdiff_t>(dropped), seconds.end());
  return !steady.empty() && median_interval(std::move(steady), 0.9).low > bound;
}

}  // namespace ridgeline::study
