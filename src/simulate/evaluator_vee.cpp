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
constexpr double ratio_step = 0.005;

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

// Waiting is in proportion to the times, so it is kept for a forward of one second, by the ratios of the other times to
// the forward's in steps of half a per cent: what is kept does not depend on which strategy asked first.
Evaluator::Waiting Evaluator::small_waiting(int64_t stages, int64_t micro_batches, spec::Recompute recompute,
                                            const PassTimes& slowest) {
  const double forward = slowest.forward();
  const auto step = [&](double seconds) {
    return std::llround(std::log(std::max(seconds / forward, 1e-3)) / ratio_step);
  };
  const int64_t backward = step(slowest.backward()), weight = step(slowest.backward_weight);
  const auto key = std::make_tuple(stages, micro_batches, static_cast<int>(recompute), backward, weight);
  auto found = small_waitings_.find(key);
  if (found == small_waitings_.end()) {
    const auto ratio = [](int64_t steps) { return std::exp(ratio_step * to_double(steps)); };
    const ChunkDurations chunk{0.5, ratio(backward) / 2, std::min(ratio(weight), ratio(backward)) / 2};
    const double message = 0.02 * (chunk.forward + chunk.backward);
    const schedule::Schedule& schedule = small_vee(stages, micro_batches, recompute);
    const double alone = played_waiting(schedule, chunk, 0);
    const double sent = (played_waiting(schedule, chunk, message) - alone) / message;
    found = small_waitings_.emplace(key, Waiting{alone, sent}).first;
  }
  return {found->second.seconds * forward, found->second.messages};
}

Evaluator::Waiting Evaluator::vee_waiting(const spec::Strategy& strategy, const PassTimes& slowest) {
  const int64_t stages = std::min(strategy.pipeline, played_stages), micro_batches = strategy.micro_batches();
  const double scale = to_double(strategy.pipeline - 1) / to_double(stages - 1);
  const auto waiting = [&](int64_t count) { return small_waiting(stages, count, strategy.recompute, slowest); };
  if (micro_batches <= 2 * strategy.pipeline) {
    const double in_small = to_double(micro_batches) * to_double(stages) / to_double(strategy.pipeline);
    const Waiting small = waiting(std::max<int64_t>(1, std::llround(in_small)));
    return {scale * small.seconds, scale * small.messages};
  }
  // Two sizes tell what grows with the micro-batches.
  const Waiting few = waiting(2 * stages), more = waiting(4 * stages);
  const auto carried_over = [&](double at_few, double at_more) {
    const double growth = (at_more - at_few) / to_double(2 * stages);
    return scale * (at_few - growth * to_double(2 * stages)) + growth * to_double(micro_batches);
  };
  return {carried_over(few.seconds, more.seconds), carried_over(few.messages, more.messages)};
}

}  // namespace ridgeline::simulate
