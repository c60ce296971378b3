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
    const auto stored = [&](bool sharded) { return sharded ? layout.shard_elements : layout.elements; };
    const int64_t compute_bytes = element_bytes(Element::compute, compute_);
    const bool own_masters = compute_ != spec::Precision::fp32 || strategy_.offload_optimizer;
    const int64_t optimizer = stored(strategy_.shards_optimizer()) * (own_masters ? 3 : 2) * fp32_bytes;
    Memory memory;
    memory.weights = stored(strategy_.shards_values()) * compute_bytes;
    memory.gradients = stored(strategy_.shards_gradients()) * fp32_bytes;
    if (strategy_.offload_optimizer) {
      int64_t most = 0;
      for (const spec::FlatBucket& bucket : layout.buckets) {
        most = std::max(most, bucket.range.size() / (strategy_.shards_optimizer() ? bucket.shards : 1));
      }
      memory.host = optimizer + 2 * most * (fp32_bytes + compute_bytes);
    } else {
      memory.optimizer = optimizer;
    }
    memory.buffers = layout.working_elements() * (fp32_bytes + (strategy_.shards_values() ? compute_bytes : 0));
    constexpr int64_t token_bytes = 8;
    // Those read, those to predict, and where ranks share a sequence their places in it.
    const int64_t tokens = (strategy_.context > 1 ? 3 : 2) * token_bytes * strategy_.held_rows(model_);
    std::vector<schedule::Kept> of_chunk, with_tokens;
    for (const spec::Range& chunk : stages_[stage]) {
      of_chunk.push_back({kept(chunk, tensor_rank), deferred(chunk, tensor_rank)});
      with_tokens.push_back({of_chunk.back().activations + tokens, of_chunk.back().deferred + tokens});
    }
    const int64_t message = boundary_bytes(model_, strategy_, compute_, tensor_rank);
    const int64_t saved = schedule::peak_kept(schedule_, stage, of_chunk);
    memory.activations = saved + recomputed_activations(model_, strategy_, compute_, tensor_rank);
    memory.messages = peak_with_messages(stage, with_tokens, message) - saved;
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

  // The most that is kept between two actions of what `of_chunk` says and of messages, as the executor of the trainer
  // keeps them (train/pipeline_executor.cpp): one receive is posted ahead from each peer, a send is kept until the
  // second one after it or what the link must hold, and a result waits to be sent.
  int64_t peak_with_messages(int64_t stage, const std::vector<schedule::Kept>& of_chunk, int64_t message) const {
    const schedule::StageActions& actions = schedule_.actions[stage];
    const auto peer = [&](const schedule::Action& action) { return *schedule::peer(schedule_, stage, action); };
    std::map<int64_t, int64_t> sent, to_receive;  // by peer
    for (const schedule::Action& action : actions) {
      if (schedule::is_receive(action.kind)) ++to_receive[peer(action)];
    }
    const std::vector<int64_t> kept = schedule::kept_after(schedule_, stage, of_chunk);
    int64_t peak = 0;
    for (size_t index = 0; index < actions.size(); ++index) {
      const schedule::Action& action = actions[index];
      if (schedule::is_send(action.kind)) ++sent[peer(action)];
      if (schedule::is_receive(action.kind)) --to_receive[peer(action)];
      int64_t messages = index + 1 < actions.size() && schedule::is_send(actions[index + 1].kind) ? 1 : 0;
      for (const auto& [from, left] : to_receive) messages += left > 0 ? 1 : 0;
      for (const auto& [to, count] : sent) messages += std::min(count, std::max<int64_t>(2, schedule_.link_capacity));
      peak = std::max(peak, kept[index] + messages * message);
    }
    return peak;
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
  const spec::Box box = spec::local_box({strategy.held_rows(model), model.hidden}, spec::residual_placement(strategy),
                                        strategy.tensor, tensor_rank);
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
