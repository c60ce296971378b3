#include "cost/stages.h"

#include "core/error.h"
#include "cost/flops.h"
#include "schedule/partition.h"
#include "spec/parameters.h"

namespace ridgeline::cost {

std::vector<double> unit_work(const spec::ModelSpec& model, spec::Recompute recompute) {
  std::vector<double> work;
  for (int64_t unit = 0; unit < spec::unit_count(model); ++unit) {
    work.push_back(unit_flops(model, recompute, unit).hardware_flops());
  }
  return work;
}

std::vector<spec::Range> stage_units(const spec::ModelSpec& model, const spec::Strategy& strategy) {
  if (strategy.stage_layers.empty()) {
    return schedule::partition_units(unit_work(model, strategy.recompute), strategy.pipeline);
  }
  if (static_cast<int64_t>(strategy.stage_layers.size()) != strategy.pipeline) {
    throw InputError(
        "strategy.stage_layers lists {} stages, but strategy.pipeline = {}; give one number for each stage",
        strategy.stage_layers.size(), strategy.pipeline);
  }
  std::vector<spec::Range> ranges = schedule::partition_explicit(strategy.stage_layers);
  if (ranges.back().end != spec::unit_count(model)) {
    throw InputError("strategy.stage_layers adds up to {} layers, but the model has {}", ranges.back().end - 2,
                     model.layers);
  }
  return ranges;
}

}  // namespace ridgeline::cost
