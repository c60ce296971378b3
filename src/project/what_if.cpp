#include "project/what_if.h"

#include <algorithm>
#include <cmath>

namespace ridgeline::project {
namespace {

constexpr int64_t kFewPlays = 200;

std::vector<int64_t> legal_nodes(StepModel& steps, const Conditions& conditions, int64_t most_nodes) {
  const spec::Strategy& strategy = steps.spec().strategy;
  std::vector<int64_t> nodes;
  const int64_t replica = strategy.tensor * strategy.context * strategy.pipeline;
  const int64_t most_data = strategy.global_batch / strategy.micro_batch;
  for (const int64_t data : spec::divisors(most_data)) {
    const int64_t devices = replica * data;
    if (devices % conditions.devices_per_node != 0) continue;
    const int64_t count = devices / conditions.devices_per_node;
    if (count > most_nodes) break;
    if (!steps.is_legal(devices, strategy.global_batch) || !steps.fits(devices, strategy.global_batch)) continue;
    nodes.push_back(count);
  }
  return nodes;
}

Option option_of(StepModel& steps, Conditions conditions, int64_t nodes) {
  const bool is_own = nodes * conditions.devices_per_node == conditions.devices;
  conditions.devices = nodes * conditions.devices_per_node;
  conditions.plays = std::min(conditions.plays, kFewPlays);
  if (!is_own) {  // what was measured there holds there
    conditions.save_seconds.reset();
    conditions.start_seconds.reset();
    conditions.evaluation_seconds.reset();
  }
  return {nodes, project(steps, conditions)};
}

}  // namespace

std::vector<Option> options(StepModel& steps, const Conditions& conditions, int64_t most_nodes, size_t keep) {
  std::vector<int64_t> all = legal_nodes(steps, conditions, most_nodes);
  std::vector<Option> found;
  if (all.empty()) return found;
  const double step = std::log(static_cast<double>(all.back()) / static_cast<double>(all.front())) /
                      static_cast<double>(std::max<size_t>(1, keep - 1));
  double next = std::log(static_cast<double>(all.front()));
  for (const int64_t nodes : all) {
    const double here = std::log(static_cast<double>(nodes));
    const bool is_own = nodes * conditions.devices_per_node == conditions.devices;
    if (here < next - 1e-9 && nodes != all.back() && !is_own) continue;
    found.push_back(option_of(steps, conditions, nodes));
    if (here >= next - 1e-9) next = here + step;
  }
  return found;
}

std::optional<Option> fewest_nodes(StepModel& steps, const Conditions& conditions, int64_t most_nodes, double days,
                                   bool high) {
  for (const int64_t nodes : legal_nodes(steps, conditions, most_nodes)) {
    // What failures and queues add can only lengthen this.
    const double least = steps.seconds(nodes * conditions.devices_per_node, steps.spec().strategy.global_batch).middle *
                         conditions.tokens /
                         static_cast<double>(steps.spec().strategy.global_batch * steps.spec().model.sequence) / 86400;
    if (least > days) continue;
    Option option = option_of(steps, conditions, nodes);
    const Range& taken = option.projection.days;
    if ((high ? taken.high : taken.middle) <= days) return option;
  }
  return std::nullopt;
}

double most_tokens(StepModel& steps, const Conditions& conditions, double node_hours) {
  Conditions some = conditions;
  some.plays = kFewPlays;
  double tokens = conditions.tokens;
  // Node-hours are nearly a multiple of tokens; the ramp, the last job and the starts are what is not.
  for (int i = 0; i < 8; ++i) {
    some.tokens = tokens;
    const double taken = project(steps, some).node_hours.middle;
    const double next = tokens * node_hours / taken;
    if (std::abs(next / tokens - 1) < 1e-4) return next;
    tokens = next;
  }
  return tokens;
}

}  // namespace ridgeline::project
