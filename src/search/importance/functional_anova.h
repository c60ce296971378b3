// Functional analysis of variance of a forest (Hutter, Hoos, Leyton-Brown 2014): which share of its variance over the
// whole grid of a space each dimension makes alone, and each pair together beyond its two.
//
// Exact: a leaf is a box of the grid, so that a marginal (the mean over all dimensions but one or two) is a sum over
// leaves of value and volume. Each value of a dimension counts alike, also where not all combinations are legal. Shares
// are means over the trees' own shares; a tree without variance has none.
#pragma once

#include <vector>

#include "search/surrogate/forest.h"

namespace ridgeline::search {

// [dimension][level]: the coordinates of the grid, ascending.
using Grid = std::vector<std::vector<double>>;

class FunctionalAnova {
 public:
  FunctionalAnova(const Forest& forest, const Grid& grid);

  double share(size_t dimension) const { return shares_[dimension]; }
  double pair_share(size_t left, size_t right) const;  // of the two together, without what each makes alone
  // The forest's mean over the grid at each value of a dimension: its main effect.
  const std::vector<double>& marginal(size_t dimension) const { return marginals_[dimension]; }
  double mean() const { return mean_; }

 private:
  std::vector<double> shares_;
  std::vector<double> pair_shares_;  // [left, right]
  std::vector<std::vector<double>> marginals_;
  double mean_ = 0;
};

}  // namespace ridgeline::search
