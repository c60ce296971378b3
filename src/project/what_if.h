// How a training's time trades against node-hours: other numbers of nodes, a deadline, a budget.
//
// Other devices change the data axis alone: tensor, pipeline, micro-batch and the global batch stay, so these are the
// same training. Numbers of nodes on which that does not divide, or does not fit in memory, are left out.
#pragma once

#include <optional>
#include <vector>

#include "project/projection.h"

namespace ridgeline::project {

struct Option {
  int64_t nodes = 0;  // that work, without spare ones
  Projection projection;
};

// Every number of whole nodes up to `most_nodes` on which the layout is legal and fits, thinned out to some `keep`,
// evenly in the logarithm, smallest and largest among them.
std::vector<Option> options(StepModel& steps, const Conditions& conditions, int64_t most_nodes, size_t keep);

// The fewest nodes with which the likely time (`high`: nine of ten sure) is within `days`; nothing where none are.
std::optional<Option> fewest_nodes(StepModel& steps, const Conditions& conditions, int64_t most_nodes, double days,
                                   bool high);

// The most tokens with which the likely node-hours are within `node_hours`, on the conditions' devices.
double most_tokens(StepModel& steps, const Conditions& conditions, double node_hours);

}  // namespace ridgeline::project
