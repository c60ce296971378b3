// Bytes that a step gathers and scatters where gradients (ZeRO-2) or parameters too (ZeRO-3) are kept as shards: a walk
// through the stage's list of actions, unit by unit, with the two slots of the working buffer (spec/flat_layout.h) as
// optim/unit_shards.h uses them. What a slot still holds is not gathered again, so a count of passes alone would be too
// high.
#pragma once

#include <cstdint>

#include "schedule/actions.h"
#include "spec/flat_layout.h"
#include "spec/model.h"
#include "spec/train.h"

namespace ridgeline::cost {

struct ShardTraffic {
  int64_t all_gather = 0;      // bytes of whole groups in the compute precision
  int64_t reduce_scatter = 0;  // of their gradients in fp32
};

// `layout`: by units, of `stage`, which holds `held`. Without `gathers_values` these are whole (ZeRO-2).
ShardTraffic shard_traffic(const spec::ModelSpec& model, const spec::FlatLayout& layout, const spec::StageUnits& held,
                           const schedule::StageActions& actions, spec::Precision compute, bool gathers_values);

}  // namespace ridgeline::cost
