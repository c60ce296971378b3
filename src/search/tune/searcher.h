// Searcher: which point of a study to try next, learned from the trials so far.
//
//   Searcher searcher(points, guesses, options);
//   while (const auto point = searcher.ask()) searcher.tell(run(*point));
//
// Contract. What ask() returns is a function of the options, the trials told (in their order) and the set of points
// that are pending, and of nothing else: to resume a study tell its finished trials in the order in which they ended,
// mark what still runs as pending, and ask goes on as it would have. Any number of points may be pending. A point is
// returned once, unless its trial ended by `infrastructure`; and never when a point that ran out of memory needed no
// more than it.
//
// Model. For each objective log(cost / predicted cost) is a Gaussian process over the dimensions, so that with no data
// the search follows the prediction. Memory is a second one, on log(peak / predicted peak), for which a failure of
// unknown size is a bound; failures for other reasons are a third. The point asked for is the one with the largest
// expected improvement among those whose risk to fail is within what `failure_share` leaves. Without guesses the same
// models start from nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "search/tune/points.h"
#include "search/tune/trial.h"

namespace ridgeline::search {

// What is known of a point before it is tried.
struct Guess {
  std::vector<double> costs = {};  // one an objective; empty: none
  double peak_bytes = 0;           // 0: none
};

struct SearchOptions {
  uint64_t seed = 0;
  size_t objectives = 1;       // several: each ask weighs them anew, so that the Pareto front fills
  double limit_bytes = 0;      // memory of a device; 0: not known, learned from failures
  double failure_share = 0.1;  // of trials after the first ten that may be expected to fail
};

// What the models say of a point, for tables and reports.
struct Belief {
  std::vector<double> costs;  // medians, one an objective
  double spread = 0;          // standard deviation of log(cost)
  double feasible = 1;        // probability
  double peak_bytes = 0;      // 0: nothing is known
};

class Searcher {
 public:
  // `guesses`: one a point, or empty to search blind. `points` must outlive the searcher.
  Searcher(const PointSet& points, std::vector<Guess> guesses, const SearchOptions& options);
  ~Searcher();
  Searcher(Searcher&&) noexcept;
  Searcher& operator=(Searcher&&) noexcept;

  // Nothing where every point is tried, pending, ruled out or as good as certain to fail (for now: what is told later
  // may change that). The returned point is pending from now on.
  std::optional<size_t> ask();
  void tell(const Trial& trial);
  // For resuming: a point that was asked for and whose trial still runs, or is to be started again.
  void mark_pending(size_t point);
  // A pending point whose trial will not end: it may be asked for again.
  void forget_pending(size_t point);

  Belief belief(size_t point) const;
  std::vector<Belief> beliefs(const std::vector<size_t>& points) const;
  const std::vector<Trial>& trials() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ridgeline::search
