// Strategy: how the work of a step is laid out over ranks, as plain data. The same record is planned, simulated,
// tuned and trained.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "spec/model.h"
#include "spec/placement.h"

namespace ridgeline::spec {

// zero_bubble and zero_bubble_v split the backward in gradients of inputs and of weights; the latter holds two chunks
// of the model on each stage, on the way down the stages and back.
enum class ScheduleKind { gpipe, one_f_one_b, zero_bubble, zero_bubble_v };
enum class Recompute { none, selective, full };
// How ranks that share a sequence attend to all of it. ring: keys and values go round; rank i of c holds chunks i and
// 2c-1-i of 2c, so that causal work is even. all_to_all: for attention each rank gets all of the sequence and some of
// the heads; else it holds the i-th part.
enum class ContextKind { ring, all_to_all };

struct Strategy {
  int64_t tensor = 1;
  bool sequence_parallel = false;  // shard norms, dropout and residuals over the tensor axis by sequence
  int64_t pipeline = 1;
  ScheduleKind schedule = ScheduleKind::one_f_one_b;
  // Chunks of the model that a stage holds: more than one is interleaved 1F1B; zero_bubble_v has two.
  int64_t virtual_pipeline = 1;
  // Layers of each stage (of each global stage, where there are chunks); empty: balanced, embedding and head counted.
  std::vector<int64_t> stage_layers = {};
  // A file whose order of work replaces the one that `schedule` gives (schedule/file.h); where the chunks lie stays.
  std::string schedule_file = {};
  int64_t data = 0;     // derived: ranks / (tensor * context * pipeline); 0 until derive_data was called
  int64_t context = 1;  // ranks that share each sequence
  ContextKind context_kind = ContextKind::ring;
  // What is sharded over the copies: nothing (0), optimizer state (1), gradients too (2), parameters too (3).
  int64_t zero_stage = 0;
  // Ranks among the copies that it is sharded over, neighbours, with copies in the others; 0: all copies.
  int64_t shard_group = 0;
  // Ranks that the experts of a layer lie on, those after one another of a stage; and the parts that each expert is cut
  // in, 1 or `tensor`; 0: `tensor`. Uncut, experts lie on ranks of the tensor axis too, each of which routes its rows.
  int64_t expert = 1;
  int64_t expert_tensor = 0;
  bool offload_optimizer = false;  // masters and moments lie in host memory, which updates them
  int64_t micro_batch = 1;   // samples of a micro-batch on one data parallel replica
  int64_t global_batch = 8;  // samples of one optimizer step over all replicas
  Recompute recompute = Recompute::none;
  double bucket_mib = 25.0;  // size of a gradient bucket, MiB of fp32

  int64_t ranks() const { return tensor * context * pipeline * data; }
  // Ranks that hold the same parameters: those of the data axis, and of the context axis in each of them. To gradients
  // and their sharding both are one.
  int64_t copies() const { return data * context; }
  // Parts that flat buffers are cut in over the copies.
  int64_t shards() const { return shard_group > 0 ? shard_group : copies(); }
  // Whether a rank keeps only its shard of them; one shard is no sharding.
  bool shards_optimizer() const { return zero_stage >= 1 && shards() > 1; }
  bool shards_gradients() const { return zero_stage >= 2 && shards() > 1; }
  bool shards_values() const { return zero_stage >= 3 && shards() > 1; }
  // Experts are whole on each rank that has them, though the tensor axis has several.
  bool keeps_experts_whole() const { return tensor > 1 && expert_tensor == 1; }
  // Parts that flat buffers of experts are cut in: over those of the ranks that share other buffers, or over whose
  // tensor axes, which have the same experts.
  int64_t expert_shards() const { return shards() * (keeps_experts_whole() ? tensor : 1) / expert; }
  // Pieces that the model is cut into, in order of the model.
  int64_t global_stages() const { return pipeline * virtual_pipeline; }
  // Chunks go down the stages and back up (else: round and round).
  bool is_vee() const { return schedule == ScheduleKind::zero_bubble_v; }
  bool splits_backward() const { return schedule == ScheduleKind::zero_bubble || is_vee(); }
  // The stage that holds the head; the embedding is on stage 0.
  int64_t head_stage() const { return is_vee() ? 0 : pipeline - 1; }
  // Micro-batches that one replica runs in a step (gradient accumulation).
  int64_t micro_batches() const { return global_batch / (micro_batch * data); }
  // Tokens of a sample, and of a micro-batch, that a rank of the context axis holds.
  int64_t held_sequence(const ModelSpec& model) const { return model.sequence / context; }
  int64_t held_rows(const ModelSpec& model) const { return micro_batch * held_sequence(model); }
  // What rank `index` of the context axis holds of a sample of `sequence` tokens, in order: one range, or the two chunks
  // of a ring.
  std::vector<Range> held_places(int64_t sequence, int64_t index) const;
};

// Sets `data` to what `ranks` leave, and `virtual_pipeline` to 2 where the schedule has two chunks; throws InputError
// (naming the key) where anything does not divide: ranks by tensor * context * pipeline, heads by tensor (and with
// all_to_all by context), sequence by context (twice with a ring) and by tensor with sequence_parallel, global_batch by
// micro_batch * data, layers and micro-batches by virtual_pipeline, layers by stage_layers, more stages than layers,
// vocabulary smaller than tensor.
void derive_data(Strategy& strategy, const ModelSpec& model, int64_t ranks);

// Whether derive_data would take it on as many ranks as it has; `data` is set. What proposes strategies asks this, so
// that there is one set of rules.
bool is_legal(const Strategy& strategy, const ModelSpec& model);

std::vector<int64_t> divisors(int64_t number);  // of a positive number, ascending

std::string to_string(ScheduleKind kind);
std::string to_string(Recompute recompute);
std::string to_string(ContextKind kind);

}  // namespace ridgeline::spec
