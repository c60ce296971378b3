// What the recorded times of a short run say about the mean step of a long one.
//
//   const StepTime time = step_time(seconds);      // mean seconds of the steps to come: low, middle, high
//
// A projection needs the *mean* step, slow ones included, and not the median. Steps are taken apart:
//   warm-up     left out: study/steady_state.h finds where it ends
//   slow steps  above twice the median: a pause of the file system, a straggler, garbage collection. They are rare, so
//               their rate is counted: (k + 1/2) / n with k of n seen (Jeffreys), ends by the Gamma distribution. Where
//               none was seen, the middle has none and the high end one more median step for each that n steps may
//               hide.
//   the others  mean, with an interval for the mean of the steps to come. Neighbouring steps resemble each other
//               (clocks, other users), so their variance is that of batch means: the largest over batches of 1, 2, 4
//               ... steps, as long as eight batches are left, times the batch's length (Flegal and Jones 2010), or more
//               where the correlation of neighbours asks for it.
// Drift is the difference between the means of the last and the first half. Where it is more than three standard
// errors, the middle follows the last half, and the interval takes the same change once more, either way.
//
// What no short run shows is how runs differ from each other: other nodes, other neighbours, another day. Several runs
// of the same work show it (`runs` of them): the interval then holds their spread. For a single one kRunVariation
// stands in, one standard deviation, from the spread of the study's own log (195.1 to 196.7 s within one run of 175B)
// and of repeated runs on shared machines.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "project/range.h"

namespace ridgeline::project {

inline constexpr double kRunVariation = 0.02;
inline constexpr size_t kLeastSteadySteps = 10;  // fewer say nothing about the mean

struct StepTime {
  Range seconds;       // of the mean step
  size_t warm_up = 0;  // steps left out, of all runs
  size_t steps = 0;    // that are left
  double median = 0;
  double slow_share = 0;     // of the steps, above twice the median
  double slow_seconds = 0;   // that they add to a mean step
  double drift = 0;          // last half over first half, less one
  bool drifts = false;       // surely
  size_t batch = 1;          // steps that resemble each other: the length of the batches that tell most
  double run_variation = 0;  // one standard deviation between runs, share of the mean
};

// Of one run. Throws InputError, naming `where`, for fewer than kLeastSteadySteps after warm-up or a time that is not
// positive and finite.
StepTime step_time(std::span<const double> seconds, const std::string& where);

// Of several runs of the same work.
StepTime step_time(const std::vector<std::vector<double>>& runs, const std::vector<std::string>& names);

}  // namespace ridgeline::project
