#include "simulate/stage_memory.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "cost/saved_tensors.h"
#include "cost/step_schedule.h"
#include "schedule/check.h"
#include "schedule/in_flight.h"
#include "spec/parameters.h"

namespace ridgeline::simulate {
namespace {

constexpr double kMib = 1024.0 * 1024.0;
constexpr double kGib = 1024.0 * kMib;

double to_double(int64_t value) { return static_cast<double>(value); }

}  // namespace

const cost::LocalShares& MemoryModel::shares(const spec::Strategy& strategy) {
  const auto key = std::make_tuple(strategy.tensor, strategy.expert, strategy.keeps_experts_whole());
  const auto found = shares_.find(key);
  if (found != shares_.end()) return found->second;
  return shares_.emplace(key, cost::local_shares(model_, strategy)).first->second;
}

double MemoryModel::experts(const spec::Strategy& strategy, int64_t layers) {
  return to_double(layers) * shares(strategy).experts;
}

double MemoryModel::parameters(const spec::Strategy& strategy, int64_t layers, bool first, bool last) {
  const cost::LocalShares& count = shares(strategy);
  double total = to_double(layers) * count.layer;
  if (first) total += count.embedding;
  if (last) total += count.head + (first ? 0 : count.tied);
  return total;
}

MemoryModel::LayerTensors MemoryModel::layer_tensors(const spec::Strategy& strategy) const {
  const spec::Recompute recompute = strategy.recompute;
  const bool repeats_scores = recompute == spec::Recompute::selective && recipe_.selective_is_attention;
  LayerTensors layer;
  for (const cost::SavedTensor& tensor : cost::saved_tensors(model_, strategy, spec::layer_unit(0))) {
    const bool kept = repeats_scores || cost::is_kept(tensor, recompute);
    (kept ? layer.kept : layer.dropped)[tensor.part] += to_double(cost::local_bytes(tensor, strategy, compute_, 0));
  }
  if (recipe_.keeps_masks && model_.dropout > 0) {
    const double mask = to_double(cost::LocalShares::stream_rows(model_, strategy)) * to_double(model_.hidden);
    for (const char* part : {"attention", "mlp"}) {
      (recompute == spec::Recompute::full ? layer.dropped : layer.kept)[part] += mask;
    }
  }
  if (!recipe_.fused_attention) {
    // The softmax's result, and with dropout its mask and what it leaves.
    const double bytes = element() + (model_.attention_dropout > 0 ? element() + 1 : 0);
    const double scores = to_double(strategy.micro_batch * model_.heads) / to_double(strategy.tensor) *
                          to_double(strategy.held_sequence(model_)) * to_double(model_.sequence);
    (recompute == spec::Recompute::none ? layer.kept : layer.dropped)["attention"] += scores * bytes;
  }
  return layer;
}

double MemoryModel::end_bytes(const spec::Strategy& strategy, int64_t unit) const {
  double bytes = 0;
  for (const cost::SavedTensor& tensor : cost::saved_tensors(model_, strategy, unit)) {
    bytes += to_double(cost::local_bytes(tensor, strategy, compute_, 0));
  }
  if (unit == spec::embedding_unit() && recipe_.keeps_masks && model_.dropout > 0) {
    bytes += to_double(cost::LocalShares::stream_rows(model_, strategy)) * to_double(model_.hidden);
  }
  return bytes;
}

MemoryModel::Saved MemoryModel::count_saved(const spec::Strategy& strategy) {
  const LayerTensors layer = layer_tensors(strategy);
  Saved saved;
  for (const auto& [part, bytes] : layer.kept) saved.layer += bytes;
  // Full recomputation rebuilds a layer at once, selective one part after the other.
  for (const auto& [part, bytes] : layer.dropped) {
    saved.rebuilt = strategy.recompute == spec::Recompute::full ? saved.rebuilt + bytes : std::max(saved.rebuilt, bytes);
  }
  saved.embedding = end_bytes(strategy, spec::embedding_unit());
  saved.head = end_bytes(strategy, spec::head_unit(model_));
  const double rows = to_double(strategy.held_rows(model_)), hidden = to_double(model_.hidden);
  if (recipe_.keeps_message_slices && strategy.pipeline > 1) {
    saved.scatter = rows * hidden * element() / to_double(strategy.tensor);
  }
  if (recipe_.counts_transients) {
    const cost::LocalShares& local = shares(strategy);
    const double gate = model_.gated_mlp ? 2 : 1;
    const double mlp = to_double(local.mlp_width + local.shared_width +
                                 (model_.experts > 0 ? model_.experts_per_token : 0) * local.expert_width);
    const double widest = std::max(gate * mlp, to_double(local.query_width + 2 * local.key_width));
    saved.transient = rows * element() * (3 * hidden + 2 * widest) + context_buffers(strategy);
  }
  if (recipe_.keeps_weight_gradients) {
    const cost::LocalShares& local = shares(strategy);
    const double matrix = to_double(local.mlp_width + local.expert_width) * hidden;
    saved.transient += matrix * (model_.gated_mlp ? 2 : 1) * 4 + matrix * 2;
    if (strategy.sequence_parallel) saved.transient += 4 * rows * hidden * element();
  }
  for (const cost::SavedTensor& tensor : cost::deferred_tensors(model_, strategy, spec::layer_unit(0))) {
    saved.deferred += to_double(cost::local_bytes(tensor, strategy, compute_, 0));
  }
  return saved;
}

const MemoryModel::Saved& MemoryModel::saved(const spec::Strategy& strategy) {
  const auto key = std::make_tuple(strategy.tensor, strategy.sequence_parallel, strategy.micro_batch,
                                   static_cast<int>(strategy.recompute) * 2 + (strategy.pipeline > 1 ? 1 : 0),
                                   strategy.context, static_cast<int>(strategy.context_kind), strategy.expert,
                                   strategy.keeps_experts_whole());
  const auto found = saved_.find(key);
  if (found != saved_.end()) return found->second;
  return saved_.emplace(key, count_saved(strategy)).first->second;
}

StageMemory MemoryModel::statics(const spec::Strategy& strategy, double parameters, double experts) const {
  const double in_shards = (parameters - experts) / to_double(strategy.shards()) +
                           (experts > 0 ? experts / to_double(strategy.expert_shards()) : 0);
  const bool shards_state = recipe_.shards_always || strategy.shards_optimizer();
  const bool is_fp32 = compute_ == spec::Precision::fp32;  // parameters are their own masters
  StageMemory memory;
  memory.weights = (strategy.shards_values() ? in_shards : parameters) * element();
  memory.gradients = (strategy.shards_gradients() ? in_shards : parameters) * (recipe_.bytes_fixed - 2);
  memory.optimizer = (shards_state ? in_shards : parameters) * (recipe_.bytes_sharded - (is_fp32 ? 4 : 0));
  if (strategy.offload_optimizer) memory.optimizer = 0;  // in host memory
  return memory;
}

double MemoryModel::reserve(const spec::Strategy& strategy) const {
  int communicators = 1;
  for (const int64_t size :
       {strategy.tensor, strategy.context, strategy.pipeline, strategy.copies(), strategy.expert}) {
    communicators += size > 1 ? 1 : 0;
  }
  return machine_.reserve.context_gib * kGib + communicators * machine_.reserve.communicator_mib * kMib;
}

double MemoryModel::activations(const spec::Strategy& strategy, int64_t stage, int64_t layers) {
  const Saved& one = saved(strategy);
  if (!strategy.schedule_file.empty()) return file_bytes(strategy, stage, layers) + one.rebuilt;
  if (strategy.splits_backward()) {
    const double kept = to_double(layers) * one.layer + one.scatter + (stage == 0 ? one.embedding : 0);
    return split_bytes(strategy, stage, kept, to_double(layers) * one.deferred) + one.rebuilt +
           (stage == strategy.head_stage() ? one.head : 0);
  }
  const schedule::InFlight flight = schedule::most_in_flight(
      strategy.schedule, strategy.pipeline, strategy.virtual_pipeline, strategy.micro_batches(), stage);
  const double of_chunk = to_double(layers) / to_double(strategy.virtual_pipeline) * one.layer + one.scatter;
  return to_double(flight.pairs) * of_chunk + to_double(flight.embedding) * one.embedding +
         to_double(flight.head) * one.head + one.rebuilt;
}

double MemoryModel::split_bytes(const spec::Strategy& strategy, int64_t stage, double kept, double deferred) const {
  const double m = to_double(strategy.micro_batches()), p = to_double(strategy.pipeline), most = std::min(m, p);
  if (strategy.is_vee()) return most * std::max(kept, deferred);  // at most (schedule/zero_bubble_v.cpp)
  // ZB-H1: before a backward for the input, or between it and the weights' one that follows.
  const double before = std::min(m, p - to_double(stage));
  return std::max(before * kept + (most - before) * deferred, (before - 1) * kept + (most - before + 1) * deferred);
}

double MemoryModel::file_bytes(const spec::Strategy& strategy, int64_t stage, int64_t layers) {
  const Saved& one = saved(strategy);
  auto file = files_.find(strategy.schedule_file);
  if (file == files_.end()) {
    file = files_.emplace(strategy.schedule_file, cost::step_schedule(model_, strategy)).first;
  }
  const double share = to_double(layers) / to_double(strategy.virtual_pipeline);
  const schedule::Kept chunk{std::llround(share * one.layer + one.scatter), std::llround(share * one.deferred)};
  std::vector<schedule::Kept> chunks(static_cast<size_t>(file->second.chunks_per_stage), chunk);
  if (stage == 0) chunks.front().activations += std::llround(one.embedding);
  if (stage == strategy.head_stage()) chunks.back().activations += std::llround(one.head);
  return to_double(schedule::peak_kept(file->second, stage, chunks));
}

double MemoryModel::working_elements(const spec::Strategy& strategy, int64_t layers, bool first, bool last) {
  const cost::LocalShares& count = shares(strategy);
  const double shared = first && last ? count.tied : 0;
  std::vector<double> units;
  if (first) units.push_back(count.embedding - shared);
  units.insert(units.end(), static_cast<size_t>(std::min<int64_t>(layers, 2)), count.layer);
  // Layers are alike: only whether their number is odd matters for who shares the slot of the head.
  if (last && layers % 2 == 1 && layers > 2) units.push_back(count.layer);
  if (last) units.push_back(count.head + (first ? 0 : count.tied));
  double slots[2] = {0, 0};
  for (size_t index = 0; index < units.size(); ++index) slots[index % 2] = std::max(slots[index % 2], units[index]);
  return slots[0] + slots[1] + shared;
}

// What sharding needs beside the shards, at its peak.
double MemoryModel::sharding_buffers(const spec::Strategy& strategy, int64_t layers, bool first, bool last) {
  if (recipe_.has_working_buffer) {  // as this program stores what it shards: cost/memory.h
    if (!strategy.shards_gradients()) return 0;
    return working_elements(strategy, layers, first, last) * (4 + (strategy.shards_values() ? element() : 0));
  }
  double bytes = 0;
  if (strategy.shards_values()) {
    // Two layers' weights are gathered at a time, and one layer's gradients not yet scattered.
    bytes += parameters(strategy, 1, false, false) * (2 * element() + 4);
    if (first || last) bytes += parameters(strategy, 0, first, last) * element();
  } else if (strategy.shards_gradients() && recipe_.bucket_elements == 0) {
    // One bucket is being filled while another is reduced; a bucket holds at least a whole parameter.
    bytes += 2 * std::max(strategy.bucket_mib * kMib, 4 * shares(strategy).largest);
  }
  if (recipe_.keeps_unsharded_gradients && strategy.zero_stage == 1) {
    bytes += parameters(strategy, layers, first, last) * recipe_.gradient_bytes *
             (1 - 1 / to_double(strategy.shards()));
  }
  return bytes + recipe_.bucket_elements * recipe_.gradient_bytes;
}

// Of a layer's backward on the context axis: keys and values here and arriving, their gradients of this rank's, here
// and arriving; or what goes out and comes in of all heads.
double MemoryModel::context_buffers(const spec::Strategy& strategy) {
  if (strategy.context == 1) return 0;
  const cost::LocalShares& local = shares(strategy);
  const double rows = to_double(strategy.held_rows(model_)), keys = 2 * rows * to_double(local.key_width);
  if (strategy.context_kind == spec::ContextKind::ring) return keys * (2 * element() + 3 * 4);
  return 2 * element() * (rows * to_double(local.query_width) + keys);
}

double MemoryModel::logits_buffers(const spec::Strategy& strategy) {
  const double logits = to_double(strategy.held_rows(model_)) * to_double(shares(strategy).vocabulary);
  return recipe_.chunks_logits ? std::min(logits * (element() + 4), 512 * kMib) : logits * 8;
}

StageMemory MemoryModel::stage(const spec::Strategy& strategy, int64_t stage, int64_t layers) {
  const bool first = stage == 0, last = stage == strategy.head_stage();
  const double count = parameters(strategy, layers, first, last);
  StageMemory memory = statics(strategy, count, experts(strategy, layers));
  memory.activations = activations(strategy, stage, layers);
  memory.buffers = saved(strategy).transient + sharding_buffers(strategy, layers, first, last);
  if (recipe_.keeps_weight_gradients) {
    // The head's gradient waits where the same stage goes on into its layers with every micro-batch in flight.
    if (first && last) memory.buffers += (shares(strategy).head + shares(strategy).tied) * 2;
  } else if (last) {
    memory.buffers += logits_buffers(strategy);
  }
  const double allocated = memory.total(), reserve = this->reserve(strategy);
  memory.buffers += reserve;
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
