// The schedule of a training step of a model under a strategy: the same one for trainer, memory account and simulator.
#pragma once

#include <vector>

#include "schedule/actions.h"
#include "spec/model.h"
#include "spec/strategy.h"

namespace ridgeline::cost {

// Work of each global stage by FLOPs, in thousandths of an average pass: forward, backward for the input with what is
// recomputed, backward for the weights that may be put off.
std::vector<schedule::Work> stage_work(const spec::ModelSpec& model, const spec::Strategy& strategy);

// `strategy.data` must be derived. Throws InputError as schedule::make_schedule does.
schedule::Schedule step_schedule(const spec::ModelSpec& model, const spec::Strategy& strategy);

}  // namespace ridgeline::cost
