// What earlier studies say of how far predictions are off, for a study of another model, machine or number of devices.
//
// Never times or bytes themselves: of an earlier trial only log(cost / what was predicted for it then) and log(peak /
// predicted peak) are known here, with the numbers of its strategy. Each of the two is learned over the dimensions of
// the new study as a search does (surrogate/process_model.h), with a larger noise, and the new study's guesses are
// moved by the posterior means: by nothing where no earlier trial is like a point, by what all of them share where all
// are off alike. The search learns from its own trials what is left.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "search/tune/points.h"
#include "search/tune/searcher.h"

namespace ridgeline::search {

struct EarlierTrial {
  std::string point;                    // key of the earlier study's PointSet
  std::optional<double> log_cost = {};  // log(cost / predicted cost) of its first goal; none: it failed
  std::optional<double> log_peak = {};  // log(peak / predicted peak)
};

struct Transfer {
  std::vector<Guess> guesses;
  size_t costs = 0;  // earlier trials whose cost, and whose peak, could be placed in the new space
  size_t peaks = 0;
};

// Trials that lack a number in which the new points differ are left out.
Transfer transferred(const PointSet& points, std::vector<Guess> guesses, const std::vector<EarlierTrial>& earlier);

}  // namespace ridgeline::search
