// The trials that no other one beats in every objective.
#pragma once

#include <vector>

#include "search/tune/trial.h"

namespace ridgeline::search {

// Places in `trials` of those that ran to their end and to which no other one is at least equal in all costs and lower
// in one; of equal ones the first. In ascending order of the first cost.
std::vector<size_t> pareto_front(const std::vector<Trial>& trials);

}  // namespace ridgeline::search
