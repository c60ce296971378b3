// Which points a search looks at, where there are more than it can: those that are predicted to be the fastest of what
// is predicted to fit, the neighbours of the best trials, and a sample of the rest.
#pragma once

#include <cstdint>
#include <vector>

#include "search/tune/points.h"
#include "search/tune/searcher.h"

namespace ridgeline::search {

inline constexpr size_t kMostCandidates = 8192;

// Ascending. `guesses` may be empty; `best`: points of the best trials, the best first.
std::vector<size_t> choose_candidates(const PointSet& points, const std::vector<Guess>& guesses,
                                      const SearchOptions& options, const std::vector<size_t>& best);

}  // namespace ridgeline::search
