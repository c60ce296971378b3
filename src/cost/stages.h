// Which units of the model each pipeline stage holds under a strategy: the one place where explicit and balanced stages
// meet, used by the trainer, the checkpoint and every prediction. With chunks (strategy.virtual_pipeline) the model is
// cut into the global stages of schedule/actions.h, which then lie where the schedule says.
#pragma once

#include <vector>

#include "spec/flat_layout.h"
#include "spec/model.h"
#include "spec/placement.h"
#include "spec/strategy.h"

namespace ridgeline::cost {

// Work of each unit for balancing: hardware FLOPs of a sample with the recomputation chosen.
std::vector<double> unit_work(const spec::ModelSpec& model, spec::Recompute recompute);

// The units of each global stage, in model order: strategy.stage_layers where given, else the balanced partition
// (schedule/partition.h). Throws InputError where stage_layers does not fit model and pipeline, or where there are more
// global stages than layers.
std::vector<spec::Range> stage_units(const spec::ModelSpec& model, const spec::Strategy& strategy);

// The same by stage and chunk.
std::vector<spec::StageUnits> held_units(const spec::ModelSpec& model, const spec::Strategy& strategy);

}  // namespace ridgeline::cost
