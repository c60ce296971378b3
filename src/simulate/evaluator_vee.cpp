// What a V-shaped pipeline waits. Its lists are made greedily (schedule/zero_bubble_v.cpp), so there is no formula: a
// small pipeline of alike chunks, with the work that the lists are made for and the times that chunks take, is played,
// and its waiting carried over. It has a part that grows with the stages, as p - 1, and where times are not in
// proportion to work one that grows with the micro-batches.
#include <algorithm>
#include <cmath>

#include "cost/flops.h"
#include "schedule/actions.h"
#include "simulate/evaluator.h"
#include "spec/parameters.h"

namespace ridgeline::simulate {
namespace {

constexpr int64_t played_stages = 4;

double to_double(int64_t value) { return static_cast<double>(value); }

// Of a chunk of the average stage, as cost::stage_work counts it.
schedule::Work average_work(const spec::ModelSpec& model, spec::Recompute recompute) {
  double deferrable = 0;
  for (const int64_t unit : {spec::layer_unit(0), spec::embedding_unit(), spec::head_unit(model)}) {
    const int64_t times = unit == spec::layer_unit(0) ? model.layers : 1;
    deferrable += to_double(times) * cost::unit_deferrable_flops(model, unit);
  }
  const cost::PassFlops flops = cost::sample_flops(model, recompute);
  const double whole = flops.hardware_flops();
  const auto share = [&](double part) { return std::max<int64_t>(1, std::llround(3000 * part / whole)); };
  return {share(flops.forward), share(flops.backward + flops.recompute - deferrable), share(deferrable)};
}

// Seconds of the slowest path beyond the work of one stage.
double played_waiting(const schedule::Schedule& schedule, const ChunkDurations& chunk, double message) {
  const std::vector<ChunkDurations> durations(2 * schedule.stages, chunk);
  const double work = 2 * to_double(schedule.micro_batches) * (chunk.forward + chunk.backward);
  return play(schedule, durations, message, /*keeps_spans=*/false).seconds - work;
}

}  // namespace

const schedule::Schedule& Evaluator::small_vee(int64_t stages, int64_t micro_batches, spec::Recompute recompute) {
  const auto key = std::make_tuple(stages, micro_batches, static_cast<int>(recompute));
  const auto found = small_vees_.find(key);
  if (found != small_vees_.end()) return found->second;
  spec::Strategy strategy;
  strategy.schedule = spec::ScheduleKind::zero_bubble_v;
  strategy.virtual_pipeline = 2;
  strategy.pipeline = stages;
  strategy.data = 1;
  strategy.global_batch = micro_batches;
  const std::vector<schedule::Work> work(2 * stages, average_work(model_, recompute));
  return small_vees_.emplace(key, schedule::make_schedule(strategy, work)).first->second;
}

Evaluator::Waiting Evaluator::vee_waiting(const spec::Strategy& strategy, const PassTimes& slowest) {
  const int64_t stages = std::min(strategy.pipeline, played_stages), micro_batches = strategy.micro_batches();
  const double scale = to_double(strategy.pipeline - 1) / to_double(stages - 1);
  const ChunkDurations chunk{slowest.forward() / 2, slowest.backward() / 2, slowest.backward_weight / 2};
  const double message = 0.02 * (chunk.forward + chunk.backward);
  const auto waiting = [&](int64_t count, double message_seconds) {
    return played_waiting(small_vee(stages, count, strategy.recompute), chunk, message_seconds);
  };
  if (micro_batches <= 2 * strategy.pipeline) {
    const double in_small = to_double(micro_batches) * to_double(stages) / to_double(strategy.pipeline);
    const int64_t count = std::max<int64_t>(1, std::llround(in_small));
    const double alone = waiting(count, 0);
    return {scale * alone, scale * (waiting(count, message) - alone) / message};
  }
  // Two sizes tell what grows with the micro-batches.
  const double few = waiting(2 * stages, 0), more = waiting(4 * stages, 0);
  const double few_sent = waiting(2 * stages, message), more_sent = waiting(4 * stages, message);
  const auto carried_over = [&](double at_few, double at_more) {
    const double growth = (at_more - at_few) / to_double(2 * stages);
    return scale * (at_few - growth * to_double(2 * stages)) + growth * to_double(micro_batches);
  };
  return {carried_over(few, more), carried_over(few_sent - few, more_sent - more) / message};
}

}  // namespace ridgeline::simulate
