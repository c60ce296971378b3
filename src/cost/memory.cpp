#include "cost/memory.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "core/error.h"
#include "cost/saved_tensors.h"
#include "cost/stages.h"
#include "cost/step_schedule.h"
#include "schedule/check.h"
#include "spec/flat_layout.h"
#include "spec/parameters.h"

namespace ridgeline::cost {
namespace {

constexpr int64_t fp32_bytes = 4;

// What all devices share; declared and cut once.
class Account {
 public:
  Account(const spec::ModelSpec& model, const spec::Strategy& strategy, spec::Precision compute)
      : model_(model),
        strategy_(strategy),
        compute_(compute),
        parameters_(spec::declare_parameters(model, strategy)),
        stages_(held_units(model, strategy)),
        schedule_(step_schedule(model, strategy)) {}

  int64_t stage_count() const { return static_cast<int64_t>(stages_.size()); }

  Memory device(int64_t stage, int64_t tensor_rank) const {
    RIDGELINE_ASSERT(stage >= 0 && stage < stage_count() && tensor_rank >= 0 && tensor_rank < strategy_.tensor);
    const spec::FlatLayout layout = spec::make_flat_layout(parameters_, stages_, stage, tensor_rank, strategy_);
    const auto stored = [&](bool sharded) { return sharded ? layout.elements / layout.shards : layout.elements; };
    const int64_t compute_bytes = element_bytes(Element::compute, compute_);
    const bool own_masters = compute_ != spec::Precision::fp32 || strategy_.offload_optimizer;
    const int64_t optimizer = stored(strategy_.shards_optimizer()) * (own_masters ? 3 : 2) * fp32_bytes;
    Memory memory;
    memory.weights = stored(strategy_.shards_values()) * compute_bytes;
    memory.gradients = stored(strategy_.shards_gradients()) * fp32_bytes;
    if (strategy_.offload_optimizer) {
      int64_t most = 0;
      for (const spec::FlatBucket& bucket : layout.buckets) most = std::max(most, bucket.range.size());
      if (strategy_.shards_optimizer()) most /= layout.shards;
      memory.host = optimizer + 2 * most * (fp32_bytes + compute_bytes);
    } else {
      memory.optimizer = optimizer;
    }
    memory.buffers = layout.working_elements() * (fp32_bytes + (strategy_.shards_values() ? compute_bytes : 0));
    std::vector<schedule::Kept> of_chunk;
    for (const spec::Range& chunk : stages_[stage]) {
      of_chunk.push_back({kept(chunk, tensor_rank), deferred(chunk, tensor_rank)});
    }
    memory.activations = schedule::peak_kept(schedule_, stage, of_chunk) +
                         recomputed_activations(model_, strategy_, compute_, tensor_rank);
    memory.messages = messages(stage) * boundary_bytes(model_, strategy_, compute_, tensor_rank);
    return memory;
  }

  // Saved tensors of one micro-batch on all chunks.
  int64_t kept(int64_t stage, int64_t tensor_rank) const {
    int64_t bytes = 0;
    for (const spec::Range& chunk : stages_[stage]) bytes += kept(chunk, tensor_rank);
    return bytes;
  }

 private:
  int64_t kept(const spec::Range& units, int64_t tensor_rank) const {
    int64_t bytes = 0;
    for (int64_t unit = units.begin; unit < units.end; ++unit) {
      for (const SavedTensor& tensor : saved_tensors(model_, strategy_, unit)) {
        if (is_kept(tensor, strategy_.recompute)) bytes += local_bytes(tensor, strategy_, compute_, tensor_rank);
      }
    }
    return bytes;
  }

  // As many as the executor of the trainer keeps (train/pipeline_executor.cpp): one receive is posted ahead, and a send
  // is kept until the second one after it, or what the link must hold.
  int64_t messages(int64_t stage) const {
    std::map<int64_t, int64_t> sent, received;  // by peer
    for (const schedule::Action& action : schedule_.actions[stage]) {
      if (schedule::is_send(action.kind)) ++sent[*schedule::peer(schedule_, stage, action)];
      if (schedule::is_receive(action.kind)) ++received[*schedule::peer(schedule_, stage, action)];
    }
    int64_t count = static_cast<int64_t>(received.size());
    for (const auto& [peer, number] : sent) count += std::min(number, std::max<int64_t>(2, schedule_.link_capacity));
    return count;
  }

  int64_t deferred(const spec::Range& units, int64_t tensor_rank) const {
    int64_t bytes = 0;
    for (int64_t unit = units.begin; unit < units.end; ++unit) {
      for (const SavedTensor& tensor : deferred_tensors(model_, strategy_, unit)) {
        bytes += local_bytes(tensor, strategy_, compute_, tensor_rank);
      }
    }
    return bytes;
  }

  const spec::ModelSpec& model_;
  const spec::Strategy& strategy_;
  spec::Precision compute_;
  std::vector<spec::ParameterSpec> parameters_;
  std::vector<spec::StageUnits> stages_;
  schedule::Schedule schedule_;
};

}  // namespace

int64_t boundary_bytes(const spec::ModelSpec& model, const spec::Strategy& strategy, spec::Precision compute,
                       int64_t tensor_rank) {
  const spec::Box box = spec::local_box({strategy.micro_batch * model.sequence, model.hidden},
                                        spec::residual_placement(strategy), strategy.tensor, tensor_rank);
  return box.elements() * element_bytes(Element::compute, compute);
}

Memory device_memory(const spec::ModelSpec& model, const spec::Strategy& strategy, spec::Precision compute,
                     int64_t stage, int64_t tensor_rank) {
  return Account(model, strategy, compute).device(stage, tensor_rank);
}

FullestDevice fullest_device(const spec::ModelSpec& model, const spec::Strategy& strategy, spec::Precision compute) {
  const Account account(model, strategy, compute);
  FullestDevice fullest;
  for (int64_t stage = 0; stage < account.stage_count(); ++stage) {
    const Memory memory = account.device(stage, /*tensor_rank=*/0);
    if (memory.total() > fullest.memory.total()) fullest = {stage, memory};
  }
  return fullest;
}

int64_t micro_batch_activations(const spec::ModelSpec& model, const spec::Strategy& strategy, spec::Precision compute,
                                int64_t stage, int64_t tensor_rank) {
  return Account(model, strategy, compute).kept(stage, tensor_rank);
}

int64_t recomputed_activations(const spec::ModelSpec& model, const spec::Strategy& strategy, spec::Precision compute,
                               int64_t tensor_rank) {
  std::map<std::string, int64_t> of_part;
  for (const SavedTensor& tensor : saved_tensors(model, strategy, spec::layer_unit(0))) {
    if (!is_kept(tensor, strategy.recompute))
      of_part[tensor.part] += local_bytes(tensor, strategy, compute, tensor_rank);
  }
  int64_t sum = 0, largest = 0;
  for (const auto& [part, bytes] : of_part) {
    sum += bytes;
    largest = std::max(largest, bytes);
  }
  return strategy.recompute == spec::Recompute::full ? sum : largest;
}

}  // namespace ridgeline::cost
