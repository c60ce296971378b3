#include "simulate/evaluator.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "cost/flops.h"
#include "cost/kernels.h"
#include "cost/stages.h"
#include "cost/step_schedule.h"
#include "simulate/collective.h"
#include "simulate/groups.h"
#include "simulate/kernel_time.h"
#include "spec/parameters.h"

namespace ridgeline::simulate {
namespace {

constexpr double kMib = 1024.0 * 1024.0;

double to_double(int64_t value) { return static_cast<double>(value); }

// What ZB-H1 waits for a stage before the first forward and after the last backward of the others.
double waiting_of(const PassTimes& times) {
  return times.forward() + std::max(0.0, times.backward() - 2 * times.backward_weight);
}

}  // namespace

Evaluator::Evaluator(const spec::ModelSpec& model, const spec::Machine& machine, const cost::Recipe& recipe,
                     spec::Precision compute)
    : model_(model),
      machine_(machine),
      recipe_(recipe),
      compute_(compute),
      memory_(model, machine, compute, recipe),
      sample_model_flops_(cost::sample_flops(model, spec::Recompute::none).model_flops()) {
  for (const auto recompute : {spec::Recompute::none, spec::Recompute::selective, spec::Recompute::full}) {
    double flops = cost::sample_flops(model, recompute).hardware_flops();
    if (recompute == spec::Recompute::selective && recipe.selective_is_attention) {
      flops += 4.0 * to_double(model.layers) * to_double(model.sequence) * to_double(model.sequence) *
               to_double(model.query_width());
    }
    sample_hardware_flops_[static_cast<int>(recompute)] = flops;
  }
}

const Evaluator::UnitTimes& Evaluator::unit_times(const spec::Strategy& strategy) {
  const auto key = std::make_tuple(strategy.tensor, strategy.sequence_parallel, strategy.micro_batch,
                                   static_cast<int>(strategy.recompute), strategy.context,
                                   static_cast<int>(strategy.context_kind), strategy.expert,
                                   strategy.keeps_experts_whole());
  const auto found = unit_times_.find(key);
  if (found != unit_times_.end()) return found->second;
  UnitTimes times;
  times.embedding = measure(strategy, spec::embedding_unit());
  times.layer = measure(strategy, spec::layer_unit(0));
  times.head = measure(strategy, spec::head_unit(model_));
  return unit_times_.emplace(key, times).first->second;
}

PassTimes Evaluator::stage_times(const UnitTimes& units, const spec::Strategy& strategy, int64_t stage,
                                 int64_t layers) const {
  PassTimes times;
  times.add(units.layer, to_double(layers));
  if (stage == 0) times.add(units.embedding, 1);
  if (stage == strategy.head_stage()) times.add(units.head, 1);
  times.forward_compute += 0.5e-3 * machine_.stack.micro_batch_ms;
  times.backward_compute += 0.5e-3 * machine_.stack.micro_batch_ms;
  return times;
}

// Of all chunks of a stage together.
std::vector<int64_t> Evaluator::held_layers(const spec::Strategy& strategy) const {
  std::vector<int64_t> layers;
  for (const spec::StageUnits& stage : cost::held_units(model_, strategy)) {
    layers.push_back(0);
    for (const spec::Range& units : stage) {
      const int64_t outside = (units.begin == 0 ? 1 : 0) + (units.end == spec::unit_count(model_) ? 1 : 0);
      layers.back() += units.size() - outside;
    }
  }
  return layers;
}

const std::vector<int64_t>& Evaluator::stage_layers(const spec::Strategy& strategy) {
  if (!strategy.stage_layers.empty()) {
    // Recipes of other programs give them by stage, whatever the chunks.
    if (static_cast<int64_t>(strategy.stage_layers.size()) == strategy.pipeline) return strategy.stage_layers;
    return explicit_layers_ = held_layers(strategy);
  }
  const auto key = std::make_tuple(strategy.pipeline, strategy.virtual_pipeline, static_cast<int>(strategy.recompute));
  const auto found = stage_layers_.find(key);
  if (found != stage_layers_.end()) return found->second;
  std::vector<int64_t> layers = cost::with_stages(strategy, model_, recipe_).stage_layers;
  if (layers.empty()) layers = held_layers(strategy);
  return stage_layers_.emplace(key, std::move(layers)).first->second;
}

double Evaluator::message_seconds(const spec::Strategy& strategy) const {
  if (strategy.pipeline == 1) return 0;
  const double element = compute_ == spec::Precision::fp32 ? 4 : 2;
  const double bytes = to_double(strategy.held_rows(model_)) * to_double(model_.hidden) * element;
  const int64_t distance = strategy.tensor * strategy.copies();
  const bool cut = strategy.sequence_parallel || recipe_.scatters_messages;
  if (strategy.tensor == 1 || !cut) return send_seconds(machine_, bytes, distance);
  const double slice = send_seconds(machine_, bytes / to_double(strategy.tensor), distance);
  if (strategy.sequence_parallel) return slice;
  return slice + collective_seconds(machine_, cost::MessageKind::all_gather, bytes, tensor_group(strategy));
}

double Evaluator::over_shards(const spec::Strategy& strategy, cost::MessageKind kind, double parameters, double experts,
                              double bytes_of_element) const {
  const double dense = (parameters - experts) * bytes_of_element;
  const double seconds = collective_seconds(machine_, kind, dense, shard_group(strategy));
  if (experts <= 0) return seconds;
  return seconds + collective_seconds(machine_, kind, experts * bytes_of_element, expert_shard_group(strategy));
}

PassTimes Evaluator::sharding_times(const spec::Strategy& strategy, const UnitTimes& units, int64_t layers) {
  PassTimes times;
  if (!strategy.shards_gradients()) return times;
  const double element = compute_ == spec::Precision::fp32 ? 4 : 2;
  const double parameters = memory_.parameters(strategy, 1, false, false), experts = memory_.experts(strategy, 1);
  const double gather = strategy.shards_values() ? over_shards(strategy, cost::MessageKind::all_gather, parameters,
                                                               experts, element)
                                                 : 0;
  const double scatter =
      over_shards(strategy, cost::MessageKind::reduce_scatter, parameters, experts, recipe_.gradient_bytes);
  const double slowdown = machine_.stack.overlap_slowdown, count = to_double(layers);
  const double forward = units.layer.forward(), backward = units.layer.backward();
  times.forward_comm = count * std::max(0.0, gather - forward);
  times.backward_comm = count * std::max(0.0, gather + scatter - backward);
  times.forward_compute = count * std::min(gather, forward) * slowdown;
  times.backward_compute = count * std::min(gather + scatter, backward) * slowdown;
  return times;
}

void Evaluator::pipeline_time(const spec::Strategy& strategy, const std::vector<int64_t>& layers,
                              Prediction& prediction) {
  const UnitTimes& units = unit_times(strategy);
  const double m = to_double(strategy.micro_batches()), p = to_double(strategy.pipeline),
               v = to_double(strategy.virtual_pipeline), message = message_seconds(strategy);
  PassTimes slowest;
  double sum = 0, at_ends = 0, most_forward = 0, most_backward = 0;
  for (int64_t stage = 0; stage < strategy.pipeline; ++stage) {
    const PassTimes times = stage_times(units, strategy, stage, layers[stage]);
    sum += times.both();
    at_ends += waiting_of(times);
    most_forward = std::max(most_forward, times.forward());
    most_backward = std::max(most_backward, times.backward());
    if (times.both() > slowest.both()) {
      slowest = times;
      prediction.slowest_stage = stage;
    }
  }
  double total = 0, sends = 0;
  if (strategy.pipeline == 1) {
    total = m * slowest.both();
  } else if (!strategy.schedule_file.empty()) {
    const schedule::Schedule schedule = cost::step_schedule(model_, strategy);
    const std::vector<ChunkDurations> chunks = chunk_durations(strategy);
    total = simulate::play(schedule, chunks, message, /*keeps_spans=*/false).seconds;
    sends = total - simulate::play(schedule, chunks, 0, /*keeps_spans=*/false).seconds;
  } else if (strategy.schedule == spec::ScheduleKind::gpipe) {
    sends = 2 * message * (p - 1);
    total = sum + (m - 1) * (most_forward + most_backward) + sends;
  } else if (strategy.schedule == spec::ScheduleKind::zero_bubble) {
    sends = 2 * message * std::min(m + p - 2, 2 * (p - 1));
    total = m * slowest.both() + at_ends - waiting_of(slowest) + sends;
  } else if (strategy.is_vee()) {
    const Waiting waiting = vee_waiting(strategy, slowest);
    sends = message * waiting.messages;
    total = m * slowest.both() + waiting.seconds + sends;
  } else if (strategy.virtual_pipeline == 1) {
    sends = 2 * message * (m + p - 2);
    total = sum + (m - 1) * slowest.both() + sends;
  } else {
    sends = 2 * message * (recipe_.hides_messages ? p - 1 : v * m + p - 2);
    total = sum / v + (m - 1 / v) * slowest.both() + sends;
  }
  const PassTimes sharding = sharding_times(strategy, units, layers[prediction.slowest_stage]);
  total += m * sharding.both();
  slowest.forward_compute += sharding.forward_compute;
  slowest.backward_compute += sharding.backward_compute;
  StepTime& time = prediction.time;
  time.data_comm = m * (sharding.forward_comm + sharding.backward_comm);
  time.compute = m * (slowest.forward_compute + slowest.backward_compute);
  time.tensor_comm = m * (slowest.forward_comm + slowest.backward_comm);
  time.context_comm = m * (slowest.forward_context + slowest.backward_context);
  time.expert_comm = m * (slowest.forward_expert + slowest.backward_expert);
  time.pipeline_comm = sends;
  const double busy = time.compute + time.tensor_comm + time.context_comm + time.expert_comm + sends + time.data_comm;
  time.bubble = std::max(0.0, total - busy);
}

Evaluator::StepTail Evaluator::tail(const spec::Strategy& strategy, double parameters, double experts,
                                    const PassTimes& first) {
  const bool sharded = recipe_.shards_always || strategy.zero_stage >= 1;
  const bool scatters = strategy.zero_stage >= 1;
  const double gradients = parameters * recipe_.gradient_bytes;
  StepTail tail;
  const auto reduction = scatters ? cost::MessageKind::reduce_scatter : cost::MessageKind::all_reduce;
  double reduce = over_shards(strategy, reduction, parameters, experts, recipe_.gradient_bytes);
  if (recipe_.reduces_while_backward && strategy.copies() > 1) {
    // All buckets but the last one run while backward goes on.
    const double buckets = std::max(1.0, parameters * 4 / (strategy.bucket_mib * kMib));
    const double hidden = std::min(reduce * (1 - 1 / buckets), first.backward());
    reduce -= hidden;
    tail.slowed = hidden * machine_.stack.overlap_slowdown;
  }
  if (strategy.shards_gradients()) reduce = tail.slowed = 0;  // with each micro-batch: sharding_times
  tail.data_comm = reduce;
  if (strategy.shards() < strategy.copies()) {
    tail.data_comm += collective_seconds(machine_, cost::MessageKind::all_reduce,
                                         gradients / to_double(strategy.shards()), replica_group(strategy));
  }
  if (sharded && !strategy.shards_values()) {
    const double gather =
        over_shards(strategy, cost::MessageKind::all_gather, parameters, experts, recipe_.parameter_bytes);
    const double hidden = recipe_.gathers_while_forward ? std::min(0.9 * gather, first.forward()) : 0;
    tail.data_comm += gather - hidden;
    tail.slowed += hidden * machine_.stack.overlap_slowdown;
  }
  if (model_.tied && strategy.head_stage() > 0) {
    const Group ends{2, strategy.tensor * strategy.copies() * (strategy.pipeline - 1)};
    tail.data_comm +=
        collective_seconds(machine_, cost::MessageKind::all_reduce,
                           memory_.shares(strategy).tied * recipe_.gradient_bytes, ends);
  }
  // Reads of gradients for the norm and of zeroing them; gradient, master, two moments and weight in the update.
  const double shard = (parameters - experts) / to_double(strategy.shards()) +
                       (experts > 0 ? experts / to_double(strategy.expert_shards()) : 0);
  const double kept = strategy.shards_gradients() ? shard : parameters, owned = sharded ? shard : parameters;
  // Offloaded, the update is bound by the host: gradients in, values out, and its own pass over the state.
  const double element = compute_ == spec::Precision::fp32 ? 4 : 2;
  if (strategy.offload_optimizer) {
    const double host = owned * (std::max(4.0, element) + 30);
    tail.optimizer = host / (machine_.links.host_gb_per_s * 1e9);
  }
  const double bytes = kept * 8 + (strategy.offload_optimizer ? 0 : owned * 30);
  tail.optimizer += bytes / (machine_.device.memory_gb_per_s * 1e9 * machine_.stack.optimizer_efficiency) +
                   machine_.stack.step_ms * 1e-3;
  return tail;
}

void Evaluator::rates(Prediction& prediction) const {
  const spec::Strategy& strategy = prediction.strategy;
  const double samples = to_double(strategy.global_batch), seconds = prediction.step_seconds;
  const double devices = to_double(strategy.ranks()), peak = machine_.peak_flops(compute_);
  prediction.tokens_per_second = samples * to_double(model_.sequence) / seconds;
  prediction.tflops_per_device = samples * sample_model_flops_ / seconds / devices * 1e-12;
  prediction.hardware_tflops_per_device =
      samples * sample_hardware_flops_[static_cast<int>(strategy.recompute)] / seconds / devices * 1e-12;
  prediction.mfu = prediction.tflops_per_device * 1e12 / peak;
  prediction.hfu = prediction.hardware_tflops_per_device * 1e12 / peak;
}

StageMemory Evaluator::fullest(const spec::Strategy& strategy, int64_t* fullest_stage) {
  const std::vector<int64_t>& layers = stage_layers(strategy);
  StageMemory most;
  int64_t at = 0;
  // Stages with as many layers as the one before keep fewer micro-batches, unless they hold the head.
  for (int64_t stage = 0; stage < strategy.pipeline; ++stage) {
    const bool can_be = stage < 2 || stage >= strategy.pipeline - 1 || layers[stage] > layers[stage - 1];
    if (!can_be) continue;
    const StageMemory memory = memory_.stage(strategy, stage, layers[stage]);
    if (memory.total() <= most.total()) continue;
    most = memory;
    at = stage;
  }
  if (fullest_stage != nullptr) *fullest_stage = at;
  return most;
}

Prediction Evaluator::predict(const spec::Strategy& strategy) {
  RIDGELINE_ASSERT(strategy.data > 0);
  Prediction prediction;
  prediction.strategy = strategy;
  prediction.memory = fullest(strategy, &prediction.fullest_stage);
  prediction.fit = memory_.fit(prediction.memory);
  const std::vector<int64_t>& layers = stage_layers(strategy);
  pipeline_time(strategy, layers, prediction);
  double parameters = 0, experts = 0;
  for (int64_t stage = 0; stage < strategy.pipeline; ++stage) {
    const bool first = stage == 0, last = stage == strategy.head_stage();
    if (!first && !last && stage > 1 && layers[stage] == layers[stage - 1]) continue;
    parameters = std::max(parameters, memory_.parameters(strategy, layers[stage], first, last));
    experts = std::max(experts, memory_.experts(strategy, layers[stage]));
  }
  const PassTimes first = stage_times(unit_times(strategy), strategy, 0, layers.front());
  const StepTail tail = this->tail(strategy, parameters, experts, first);
  prediction.time.data_comm += tail.data_comm;
  prediction.time.optimizer = tail.optimizer;
  prediction.time.compute += tail.slowed;
  prediction.step_seconds = prediction.time.total();
  rates(prediction);
  return prediction;
}

}  // namespace ridgeline::simulate
