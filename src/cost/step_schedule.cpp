#include "cost/step_schedule.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "cost/flops.h"
#include "cost/stages.h"

namespace ridgeline::cost {

std::vector<schedule::Work> stage_work(const spec::ModelSpec& model, const spec::Strategy& strategy) {
  const std::vector<spec::Range> stages = stage_units(model, strategy);
  const double average =
      sample_flops(model, strategy.recompute).hardware_flops() / (3.0 * static_cast<double>(stages.size()));
  // No pass is without work, and every machine rounds alike.
  const auto rounded = [&](double flops) {
    return std::max<int64_t>(1, static_cast<int64_t>(std::llround(1000.0 * flops / average)));
  };
  std::vector<schedule::Work> work;
  for (const spec::Range& units : stages) {
    double forward = 0, input = 0, weight = 0;
    for (int64_t unit = units.begin; unit < units.end; ++unit) {
      const PassFlops flops = unit_flops(model, strategy.recompute, unit);
      const double deferrable = unit_deferrable_flops(model, unit);
      forward += flops.forward;
      input += flops.backward + flops.recompute - deferrable;
      weight += deferrable;
    }
    work.push_back({rounded(forward), rounded(input), rounded(weight)});
  }
  return work;
}

schedule::Schedule step_schedule(const spec::ModelSpec& model, const spec::Strategy& strategy) {
  RIDGELINE_ASSERT(strategy.data > 0);
  // Only schedules that are made by work need it.
  return strategy.is_vee() ? schedule::make_schedule(strategy, stage_work(model, strategy))
                           : schedule::make_schedule(strategy);
}

}  // namespace ridgeline::cost
