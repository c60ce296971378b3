#include "search/tune/feasibility.h"

#include <algorithm>
#include <cmath>

namespace ridgeline::search {
namespace {

constexpr double kGuessScale = 0.15;  // kernel units of log(peak / guess): predictions are off by a third or so
constexpr double kBlindScale = 1.0;
constexpr double kBeyond = 0.15;      // how far over (or under) the limit a run without a figure is taken to lie
constexpr double kLeastDoubt = 0.01;  // of log(peak): runs of a point are not equal to the byte
constexpr double kSpread = 1.4;       // on the posterior's deviation, whose kernel is taken for certain

KernelShape start_shape(size_t dimensions, double product) {
  KernelShape shape;
  shape.lengths.assign(dimensions, 1.0);
  shape.product = product;
  return shape;
}

double normal_share(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

std::vector<uint16_t> levels_of(const PointSet& points, size_t point) {
  std::vector<uint16_t> levels;
  for (size_t d = 0; d < points.dimensions().size(); ++d)
    levels.push_back(static_cast<uint16_t>(points.level(point, d)));
  return levels;
}

}  // namespace

Feasibility::Feasibility(const PointSet& points, const std::vector<Guess>& guesses, const SearchOptions& options,
                         const std::vector<LevelAxis>& axes)
    : points_(points),
      guesses_(guesses),
      given_limit_(options.limit_bytes),
      limit_bytes_(options.limit_bytes),
      dominance_(points),
      memory_(axes, start_shape(axes.size(), 0.1), guesses.empty() ? kBlindScale : kGuessScale),
      others_(axes, start_shape(axes.size(), 1.0)),
      ruled_out_(points.size(), false),
      fits_(points.size(), false) {}

double Feasibility::expected_log_peak(size_t point) const {
  const bool has_guess = !guesses_.empty() && guesses_[point].peak_bytes > 0;
  return std::log(has_guess ? guesses_[point].peak_bytes : given_limit_);
}

void Feasibility::tell_memory(const Trial& trial) {
  const bool failed = trial.outcome == Outcome::out_of_memory;
  const double expected = expected_log_peak(trial.point), limit = std::log(limit_bytes_);
  const bool has_size = failed ? trial.missing_bytes > 0 : trial.peak_bytes > 0;
  if (!has_size && guesses_.empty()) return;  // a side alone says nothing of how far
  double value = 0;
  if (failed && has_size) {
    value = std::log(given_limit_ + trial.missing_bytes) - expected;
  } else if (failed) {
    value = std::max(limit + kBeyond - expected, 0.0);
  } else if (has_size) {
    value = std::log(trial.peak_bytes) - expected;
  } else if (expected > limit - kBeyond) {
    value = limit - kBeyond - expected;
  } else {
    return;  // as was expected
  }
  memory_.add(levels_of(points_, trial.point), value);
}

void Feasibility::tell(const Trial& trial) {
  const bool ran = trial.outcome == Outcome::ok || trial.outcome == Outcome::stopped_early;
  const bool out_of_memory = trial.outcome == Outcome::out_of_memory;
  if (out_of_memory) dominance_.for_each_heavier(trial.point, [&](size_t other) { ruled_out_[other] = true; });
  if (ran) dominance_.for_each_lighter(trial.point, [&](size_t other) { fits_[other] = true; });
  if (limit_bytes_ > 0 && (ran || out_of_memory)) tell_memory(trial);
  if (limit_bytes_ > 0 && ran) limit_bytes_ = std::max(limit_bytes_, trial.peak_bytes);
  // Memory explains a failure whose size is known; all others may have reasons of their own.
  const bool explained = out_of_memory && limit_bytes_ > 0 && trial.missing_bytes > 0;
  if (explained) return;
  has_other_failures_ = has_other_failures_ || !ran;
  others_.add(levels_of(points_, trial.point), ran);
}

void Feasibility::look_at(const std::vector<size_t>& candidates, const std::shared_ptr<const LevelColumns>& columns) {
  candidates_ = candidates;
  memory_.look_at(columns);
  others_.look_at(columns);
}

double Feasibility::probability(size_t point, size_t place, const Posterior* memory,
                                const std::vector<double>* others) const {
  double result = 1;
  if (memory != nullptr && !fits_[point]) {
    const double room = std::log(limit_bytes_) - expected_log_peak(point) - memory->mean[place];
    result = normal_share(room / std::hypot(kSpread * memory->deviation[place], kLeastDoubt));
  }
  if (others != nullptr) result = std::min(result, (*others)[place]);
  return result;
}

std::vector<double> Feasibility::probabilities() {
  const Posterior* memory = knows_memory() ? &memory_.posterior() : nullptr;
  const std::vector<double>* others = has_other_failures_ ? &others_.probabilities() : nullptr;
  std::vector<double> result;
  for (size_t place = 0; place < candidates_.size(); ++place) {
    result.push_back(probability(candidates_[place], place, memory, others));
  }
  return result;
}

std::vector<Feasibility::Verdict> Feasibility::verdicts(const std::vector<size_t>& points,
                                                        const std::shared_ptr<const LevelColumns>& columns) const {
  Posterior memory_posterior;
  std::vector<double> other_probabilities;
  if (knows_memory()) memory_posterior = memory_.posterior_of(columns);
  if (has_other_failures_) other_probabilities = others_.probabilities_of(columns);
  const Posterior* memory = knows_memory() ? &memory_posterior : nullptr;
  const std::vector<double>* others = has_other_failures_ ? &other_probabilities : nullptr;
  std::vector<Verdict> result;
  for (size_t place = 0; place < points.size(); ++place) {
    Verdict verdict{probability(points[place], place, memory, others), 0};
    if (memory != nullptr) verdict.peak_bytes = std::exp(expected_log_peak(points[place]) + memory->mean[place]);
    result.push_back(verdict);
  }
  return result;
}

}  // namespace ridgeline::search
