#include "project/step_time.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "study/steady_state.h"

namespace ridgeline::project {
namespace {

constexpr size_t kWarmUpWindow = 400;  // warm-up is looked for in the first steps: judging it is quadratic in time
constexpr double kSlow = 2;            // times the median
constexpr size_t kLeastBatches = 8;
constexpr double kSureDrift = 3;  // standard errors
constexpr double kFinest = 1e-3;  // share of a step; less is no drift, however regular
constexpr double kUnseen = 1.92;  // 95 % quantile of Gamma(1/2, 1): slow steps that n steps without one may hide

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double variance_of(std::span<const double> values) {
  const double mean = mean_of(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return sum / static_cast<double>(values.size() - 1);
}

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// By how much the resemblance of neighbours, where it fades evenly with distance, makes a sum vary more: (1 + r) /
// (1 - r) with the correlation r of neighbours, which short rows show too small (Marriott and Pope 1954).
double growth_of_variance(std::span<const double> values, double variance) {
  const double mean = mean_of(values), n = static_cast<double>(values.size());
  double sum = 0;
  for (size_t i = 1; i < values.size(); ++i) sum += (values[i] - mean) * (values[i - 1] - mean);
  const double seen = variance > 0 ? sum / (n - 1) / variance : 0;
  if (seen < 2 / std::sqrt(n)) return 1;  // as likely none
  const double correlation = std::min(seen + (1 + 4 * seen) / n, 0.98);
  return (1 + correlation) / (1 - correlation);
}

// Variance of a step that counts when many are added up: that of batch means times the batch's length, or what the
// correlation of neighbours asks for.
double long_run_variance(std::span<const double> values, size_t* best_batch) {
  const double plain = variance_of(values);
  const double growth = growth_of_variance(values, plain);
  double largest = plain * growth;
  *best_batch = static_cast<size_t>(growth);
  for (size_t batch = 2; values.size() / batch >= kLeastBatches; batch *= 2) {
    std::vector<double> means;
    for (size_t at = 0; at + batch <= values.size(); at += batch) means.push_back(mean_of(values.subspan(at, batch)));
    const double variance = variance_of(means) * static_cast<double>(batch);
    if (variance <= largest) continue;
    largest = variance;
    *best_batch = batch;
  }
  return largest;
}

// Two-sided 90 % of Student's distribution, by its expansion around the normal (Abramowitz and Stegun 26.7.5).
double student90(double freedom) {
  const double z = kNormal90, z3 = z * z * z;
  return z + (z3 + z) / (4 * freedom) + (5 * z3 * z * z + 16 * z3 + 3 * z) / (96 * freedom * freedom);
}

void check_times(std::span<const double> seconds, const std::string& where) {
  for (size_t i = 0; i < seconds.size(); ++i) {
    if (std::isfinite(seconds[i]) && seconds[i] > 0) continue;
    throw InputError("{}: recorded step {} of {} took {} s: expected a positive number; the file is damaged", where,
                     i + 1, seconds.size(), seconds[i]);
  }
}

struct Split {
  std::vector<double> usual;
  size_t slow = 0;
  double slow_excess = 0;  // seconds of slow steps above the median, in all
};

Split split_slow(std::span<const double> seconds, double median) {
  Split split;
  for (const double value : seconds) {
    if (value <= kSlow * median) {
      split.usual.push_back(value);
    } else {
      ++split.slow;
      split.slow_excess += value - median;
    }
  }
  return split;
}

// What slow steps add to a mean step. With k seen, k + 1/2 has a Gamma distribution; its ends by Wilson and Hilferty.
Range slow_addition(const Split& split, size_t steps, double median) {
  const double n = static_cast<double>(steps);
  if (split.slow == 0) return {0, 0, kUnseen / n * median};
  const double k = static_cast<double>(split.slow), excess = split.slow_excess / k;
  const auto quantile = [k](double z) {
    const double shape = k + 0.5;
    return shape * std::pow(std::max(0.0, 1 - 1 / (9 * shape) + z / (3 * std::sqrt(shape))), 3);
  };
  return {quantile(-kNormal90) / n * excess, k / n * excess, quantile(kNormal90) / n * excess};
}

}  // namespace

StepTime step_time(std::span<const double> seconds, const std::string& where) {
  check_times(seconds, where);
  StepTime time;
  const std::span<const double> first = seconds.first(std::min(seconds.size(), kWarmUpWindow));
  if (!first.empty()) time.warm_up = study::steady_state({first.begin(), first.end()}).dropped;
  time.steps = seconds.size() - time.warm_up;
  if (time.steps < kLeastSteadySteps) {
    throw InputError(
        "{}: {} steps, {} of them warm-up: too short to project, expected at least {} steps after it; "
        "train on, the same command continues the run",
        where, seconds.size(), time.warm_up, kLeastSteadySteps);
  }
  const std::span<const double> steady = seconds.subspan(time.warm_up);
  time.median = median_of({steady.begin(), steady.end()});
  const Split split = split_slow(steady, time.median);
  time.slow_share = static_cast<double>(split.slow) / static_cast<double>(steady.size());

  const double n = static_cast<double>(split.usual.size());
  const double variance = long_run_variance(split.usual, &time.batch);
  const std::span<const double> usual(split.usual);
  const size_t half = usual.size() / 2;
  const double early = mean_of(usual.first(half)), late = mean_of(usual.last(half));
  time.drift = late / early - 1;
  size_t unused = 0;  // noise within the halves, which a change between them does not raise
  const double within = long_run_variance(usual.first(half), &unused) + long_run_variance(usual.last(half), &unused);
  time.drifts = std::abs(late - early) > kSureDrift * std::sqrt(within / static_cast<double>(half)) + kFinest * early;
  const double middle = time.drifts ? late : mean_of(usual);
  const double change = time.drifts ? std::abs(late - early) : 0;

  time.run_variation = kRunVariation;
  const double freedom = std::max(1.0, n / static_cast<double>(time.batch) - 1);
  const double run = kNormal90 * kRunVariation * middle;
  const double noise = student90(freedom) * std::sqrt(variance / n);
  const double spread = std::sqrt(noise * noise + run * run);
  const Range slow = slow_addition(split, steady.size(), time.median);
  time.slow_seconds = slow.middle;
  time.seconds = {std::max(middle - spread - change, middle / 4) + slow.low, middle + slow.middle,
                  middle + spread + change + slow.high};
  return time;
}

StepTime step_time(const std::vector<std::vector<double>>& runs, const std::vector<std::string>& names) {
  RIDGELINE_ASSERT(!runs.empty() && runs.size() == names.size());
  std::vector<StepTime> each;
  for (size_t i = 0; i < runs.size(); ++i) each.push_back(step_time(runs[i], names[i]));
  if (each.size() == 1) return each.front();
  const double count = static_cast<double>(each.size());
  StepTime all = each.front();
  std::vector<double> middles;
  all.warm_up = all.steps = 0;
  all.slow_share = all.slow_seconds = all.median = all.drift = 0;
  all.drifts = false;
  double within = 0;
  for (const StepTime& time : each) {
    middles.push_back(time.seconds.middle);
    all.warm_up += time.warm_up;
    all.steps += time.steps;
    all.median += time.median / count;
    all.slow_share += time.slow_share / count;
    all.slow_seconds += time.slow_seconds / count;
    all.drift += time.drift / count;
    all.drifts = all.drifts || time.drifts;
    all.batch = std::max(all.batch, time.batch);
    within += (time.seconds.high - time.seconds.low) / 2 / count;
  }
  const double middle = mean_of(middles);
  const double between = std::sqrt(variance_of(middles));
  all.run_variation = between / middle;
  // The run to come is one more of them: its spread and that of their mean.
  const double run = student90(count - 1) * between * std::sqrt(1 + 1 / count);
  const double spread = std::sqrt(run * run + within * within);
  all.seconds = {std::max(middle - spread, middle / 4), middle, middle + spread};
  return all;
}

}  // namespace ridgeline::project
