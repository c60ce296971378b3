#include "simulate/stage_memory.h"

#include <algorithm>
#include <cmath>

#include "cost/memory.h"
#include "cost/saved_tensors.h"
#include "cost/step_schedule.h"
#include "schedule/check.h"
#include "spec/parameters.h"

namespace ridgeline::simulate {
namespace {

constexpr double kMib = 1024.0 * 1024.0;
constexpr double kGib = 1024.0 * kMib;

double to_double(int64_t value) { return static_cast<double>(value); }

}  // namespace

const MemoryModel::Elements& MemoryModel::elements(int64_t tensor) {
  const auto found = elements_.find(tensor);
  if (found != elements_.end()) return found->second;
  spec::Strategy strategy;
  strategy.tensor = tensor;
  spec::ModelSpec one_layer = model_;  // all layers are alike
  one_layer.layers = 1;
  Elements count;
  for (const spec::ParameterSpec& parameter : spec::declare_parameters(one_layer, strategy)) {
    const double local = to_double(spec::local_box(parameter.shape, parameter.value, tensor, 0).elements());
    const int64_t unit = parameter.units.front();
    if (unit == spec::embedding_unit()) count.embedding += local;
    if (unit == spec::layer_unit(0)) count.layer += local;
    if (unit == spec::head_unit(one_layer)) count.head += local;
    if (parameter.units.size() > 1) count.head_tied += local;  // a copy where the head is on another stage
  }
  return elements_.emplace(tensor, count).first->second;
}

double MemoryModel::parameters(int64_t tensor, int64_t layers, bool first, bool last) {
  const Elements& count = elements(tensor);
  double total = to_double(layers) * count.layer;
  if (first) total += count.embedding;
  if (last) total += count.head + (first ? 0 : count.head_tied);
  return total;
}

MemoryModel::Saved MemoryModel::count_saved(const spec::Strategy& strategy) const {
  Saved saved;
  for (const int64_t unit : {spec::layer_unit(0), spec::head_unit(model_)}) {
    for (const cost::SavedTensor& tensor : cost::saved_tensors(model_, strategy, unit)) {
      if (!cost::is_kept(tensor, strategy.recompute)) continue;
      const double bytes = to_double(cost::local_bytes(tensor, strategy, compute_, 0));
      (unit == spec::layer_unit(0) ? saved.layer : saved.head) += bytes;
    }
  }
  for (const cost::SavedTensor& tensor : cost::deferred_tensors(model_, strategy, spec::layer_unit(0))) {
    saved.deferred += to_double(cost::local_bytes(tensor, strategy, compute_, 0));
  }
  saved.rebuilt = to_double(cost::recomputed_activations(model_, strategy, compute_, 0));
  // Gradients on their way through a layer: of the stream, and of the widest product's result and input.
  const double rows = to_double(strategy.micro_batch * model_.sequence);
  const double element = compute_ == spec::Precision::fp32 ? 4 : 2;
  const double widest = std::max(to_double(model_.ffn()) * (model_.gated_mlp ? 2 : 1),
                                 to_double(model_.query_width() + 2 * model_.key_width()));
  saved.transient = rows * element * (3 * to_double(model_.hidden) + 2 * widest / to_double(strategy.tensor));
  return saved;
}

MemoryModel::Saved MemoryModel::published_saved(const spec::Strategy& strategy) const {
  const double t = to_double(strategy.tensor);
  const double stream = to_double(strategy.micro_batch * model_.sequence) * to_double(model_.hidden);
  const double scores =
      to_double(strategy.micro_batch * model_.heads) * to_double(model_.sequence) * to_double(model_.sequence) / t;
  const double shared = strategy.sequence_parallel ? 10 / t : 10;  // what acts on the whole residual stream
  const double attention = recipe_.fused_attention ? 0 : scores * (model_.attention_dropout > 0 ? 5 : 2);
  const double whole = stream * (shared + 24 / t) + attention;
  Saved saved;
  switch (strategy.recompute) {
    case spec::Recompute::none:
      saved.layer = whole;
      break;
    case spec::Recompute::selective:
      saved.layer = whole - attention;
      saved.rebuilt = attention;
      break;
    case spec::Recompute::full:
      saved.layer = 2 * stream / (strategy.sequence_parallel ? t : 1);
      saved.rebuilt = whole - saved.layer;
      break;
  }
  saved.deferred = whole - attention;  // input and gradient of each product: about as much
  if (recipe_.scatters_messages && strategy.pipeline > 1) saved.scatter = 2 * stream / t;
  saved.head = 4 * stream;
  saved.embedding = stream * recipe_.embedding_bytes;
  return saved;
}

const MemoryModel::Saved& MemoryModel::saved(const spec::Strategy& strategy) {
  const auto key = std::make_tuple(strategy.tensor, strategy.sequence_parallel, strategy.micro_batch,
                                   static_cast<int>(strategy.recompute) * 2 + (strategy.pipeline > 1 ? 1 : 0));
  const auto found = saved_.find(key);
  if (found != saved_.end()) return found->second;
  return saved_.emplace(key, recipe_.name == "ridgeline" ? count_saved(strategy) : published_saved(strategy))
      .first->second;
}

double MemoryModel::micro_batches_in_flight(const spec::Strategy& strategy, int64_t stage) {
  const double m = to_double(strategy.micro_batches()), p = to_double(strategy.pipeline);
  if (strategy.schedule == spec::ScheduleKind::gpipe) return m;
  const double behind = p - to_double(stage);
  if (strategy.virtual_pipeline == 1) return std::min(m, behind);
  // Chunks ahead of the first backward (Narayanan et al. 2021, section 2.2.2), each a share of the stage's layers.
  const double v = to_double(strategy.virtual_pipeline);
  return std::min(m, ((v - 1) * p + 2 * (behind - 1) + 1) / v);
}

double MemoryModel::saved_bytes(const spec::Strategy& strategy, int64_t stage, double kept, double deferred) {
  if (!strategy.schedule_file.empty()) {
    auto file = files_.find(strategy.schedule_file);
    if (file == files_.end()) {
      file = files_.emplace(strategy.schedule_file, cost::step_schedule(model_, strategy)).first;
    }
    const double chunks = to_double(strategy.virtual_pipeline);
    const schedule::Kept chunk{std::llround(kept / chunks), std::llround(deferred / chunks)};
    const std::vector<schedule::Kept> of_chunk(file->second.chunks_per_stage, chunk);
    return to_double(schedule::peak_kept(file->second, stage, of_chunk));
  }
  const double m = to_double(strategy.micro_batches()), p = to_double(strategy.pipeline);
  if (!strategy.splits_backward()) return micro_batches_in_flight(strategy, stage) * kept;
  const double most = std::min(m, p);
  if (strategy.is_vee()) return most * std::max(kept, deferred);  // at most (schedule/zero_bubble_v.cpp)
  // ZB-H1: before a backward for the input, or between it and the weights' one that follows.
  const double before = std::min(m, p - to_double(stage));
  return std::max(before * kept + (most - before) * deferred, (before - 1) * kept + (most - before + 1) * deferred);
}

double MemoryModel::static_bytes(const spec::Strategy& strategy, double parameters) const {
  const bool sharded = recipe_.shards_always || strategy.zero_stage >= 1;
  const double fixed = compute_ == spec::Precision::fp32 ? recipe_.bytes_fixed + 2 : recipe_.bytes_fixed;
  const double rest = compute_ == spec::Precision::fp32 ? recipe_.bytes_sharded - 4 : recipe_.bytes_sharded;
  return parameters * (fixed + rest / (sharded ? to_double(strategy.shards()) : 1));
}

double MemoryModel::working_elements(const spec::Strategy& strategy, int64_t layers, bool first, bool last) {
  const Elements& count = elements(strategy.tensor);
  const double shared = first && last ? count.head_tied : 0;
  std::vector<double> units;
  if (first) units.push_back(count.embedding - shared);
  units.insert(units.end(), static_cast<size_t>(std::min<int64_t>(layers, 2)), count.layer);
  // Layers are alike: only whether their number is odd matters for who shares the slot of the head.
  if (last && layers % 2 == 1 && layers > 2) units.push_back(count.layer);
  if (last) units.push_back(count.head + (first ? 0 : count.head_tied));
  double slots[2] = {0, 0};
  for (size_t index = 0; index < units.size(); ++index) slots[index % 2] = std::max(slots[index % 2], units[index]);
  return slots[0] + slots[1] + shared;
}

// As this program stores what it shards: cost/memory.h.
void MemoryModel::add_sharded(const spec::Strategy& strategy, int64_t layers, bool first, bool last,
                              StageMemory& memory) {
  const double element = compute_ == spec::Precision::fp32 ? 4 : 2;
  const double count = parameters(strategy.tensor, layers, first, last), own = count / to_double(strategy.shards());
  memory.weights = (strategy.shards_values() ? own : count) * element;
  memory.gradients = own * 4;
  memory.optimizer = own * (compute_ == spec::Precision::fp32 ? 8 : 12);
  memory.buffers += working_elements(strategy, layers, first, last) * (4 + (strategy.shards_values() ? element : 0));
}

double MemoryModel::reserve(const spec::Strategy& strategy) const {
  int communicators = 1;
  for (const int64_t size : {strategy.tensor, strategy.pipeline, strategy.data}) communicators += size > 1 ? 1 : 0;
  return machine_.reserve.context_gib * kGib + communicators * machine_.reserve.communicator_mib * kMib;
}

StageMemory MemoryModel::stage(const spec::Strategy& strategy, int64_t stage, int64_t layers) {
  const bool first = stage == 0, last = stage == strategy.head_stage();
  const double count = parameters(strategy.tensor, layers, first, last);
  const Saved& saved = this->saved(strategy);
  const double element = compute_ == spec::Precision::fp32 ? 4 : 2;
  StageMemory memory;
  if (recipe_.name == "ridgeline" && strategy.shards_gradients()) {
    add_sharded(strategy, layers, first, last, memory);
  } else if (strategy.zero_stage >= 3) {
    const double owned = count / to_double(strategy.data);
    memory.weights = owned * element;
    memory.gradients = owned * 4;
    memory.optimizer = owned * (compute_ == spec::Precision::fp32 ? 8 : 12);
    // Two layers' weights are gathered at a time, and one layer's gradients not yet scattered.
    memory.buffers += parameters(strategy.tensor, 1, false, false) * (2 * element + 4);
    if (first || last) memory.buffers += parameters(strategy.tensor, 0, first, last) * element;
  } else {
    const double statics = static_bytes(strategy, count);
    memory.weights = count * element;
    memory.gradients = std::min(statics - memory.weights, count * (recipe_.bytes_fixed - 2));
    memory.optimizer = statics - memory.weights - memory.gradients;
  }
  const double kept = to_double(layers) * saved.layer + saved.scatter + (first ? saved.embedding : 0);
  memory.activations =
      saved_bytes(strategy, stage, kept, to_double(layers) * saved.deferred) + saved.rebuilt + (last ? saved.head : 0);
  memory.buffers += saved.transient + recipe_.bucket_elements * recipe_.gradient_bytes;
  if (recipe_.keeps_unsharded_gradients && strategy.zero_stage >= 1 && strategy.zero_stage < 3) {
    memory.buffers += count * recipe_.gradient_bytes * (1 - 1 / to_double(strategy.data));
  }
  if (last) {  // logits and their gradient, a chunk of rows at a time in this program, whole in others
    const double rows = to_double(strategy.micro_batch * model_.sequence);
    const double logits = rows * to_double(model_.vocabulary) / to_double(strategy.tensor);
    memory.buffers += recipe_.name == "ridgeline" ? std::min(logits * (element + 4), 512 * kMib) : logits * 8;
  }
  memory.buffers += reserve(strategy);
  const double allocated = memory.total() - reserve(strategy);
  memory.low = memory.total() + allocated * machine_.reserve.slack_low;
  memory.high = memory.total() + allocated * machine_.reserve.slack_high;
  return memory;
}

Fit MemoryModel::fit(const StageMemory& memory) const {
  const double room = machine_.device.memory_gib * kGib;
  if (memory.high <= room) return Fit::fits;
  return memory.low <= room ? Fit::at_risk : Fit::does_not_fit;
}

}  // namespace ridgeline::simulate
