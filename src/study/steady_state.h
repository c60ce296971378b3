// What a row of step times says: how many of the first steps are warm-up, and where the median of the rest lies.
//
//   const SteadyState state = steady_state(seconds);
//   if (state.is_tight(0.02)) ...            // half the interval's width is below 2 % of the median
//
// Warm-up ends at the change point that best splits the row in two levels of log time, judged by the likelihood of
// Laplace noise (sums of absolute deviations from the medians, so that a single late spike is no level of its own),
// and believed where it beats one level by more than the Bayesian information criterion's price of three parameters.
// It is looked for in the first half of what is left until none is found: compilation, caches and clocks settle one
// after the other.
//
// The interval is that of order statistics (Conover, Practical Nonparametric Statistics, section 3.2): it assumes
// nothing about the distribution of times, and exists from six samples on for 95 %.
#pragma once

#include <cstddef>
#include <vector>

namespace ridgeline::study {

struct MedianInterval {
  double median = 0;
  double low = 0;   // zero and infinity: too few samples to tell
  double high = 0;
};

// Of the samples' median, with at least the confidence (two-sided). Infinite where there are too few.
MedianInterval median_interval(std::vector<double> samples, double confidence = 0.95);

struct SteadyState {
  size_t dropped = 0;  // first steps that are warm-up
  size_t steps = 0;    // that are left
  MedianInterval seconds;
  bool is_tight(double tolerance) const;
};

SteadyState steady_state(const std::vector<double>& seconds);

// Whether the median is above `bound` with 95 % confidence (one-sided): five samples above it suffice.
bool surely_above(const std::vector<double>& seconds, size_t dropped, double bound);

}  // namespace ridgeline::study
