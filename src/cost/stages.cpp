#include "cost/stages.h"

#include "core/error.h"
#include "cost/flops.h"
#include "schedule/actions.h"
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
  const int64_t stages = strategy.global_stages();
  if (strategy.stage_layers.empty()) return schedule::partition_units(unit_work(model, strategy.recompute), stages);
  if (static_cast<int64_t>(strategy.stage_layers.size()) != stages) {
    throw InputError(
        "strategy.stage_layers lists {} stages, but strategy.pipeline * virtual_pipeline = {}; give one number for "
        "each",
        strategy.stage_layers.size(), stages);
  }
  std::vector<spec::Range> ranges = schedule::partition_explicit(strategy.stage_layers);
  if (ranges.back().end != spec::unit_count(model)) {
    throw InputError("strategy.stage_layers adds up to {} layers, but the model has {}", ranges.back().end - 2,
                     model.layers);
  }
  return ranges;
}

std::vector<spec::StageUnits> held_units(const spec::ModelSpec& model, const spec::Strategy& strategy) {
  const std::vector<spec::Range> units = stage_units(model, strategy);
  std::vector<spec::StageUnits> held;
  for (const std::vector<int64_t>& chunks : schedule::chunk_places(strategy)) {
    held.emplace_back();
    for (const int64_t global_stage : chunks) held.back().push_back(units[global_stage]);
  }
  return held;
}

}  // namespace ridgeline::cost
