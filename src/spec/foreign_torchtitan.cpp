// torchtitan's TOML: a model by its name and flavor, degrees of parallelism, batch and optimizer.
#include <array>
#include <map>

#include "core/error.h"
#include "spec/foreign_formats.h"

namespace ridgeline::spec {
namespace {

void read_model(Reading& reading) {
  TrainSpec& spec = reading.config().spec;
  static const std::map<std::string, const char*> presets = {
      {"llama3 8B", "llama3-8b"}, {"llama3 70B", "llama3-70b"}, {"llama3 405B", "llama3-405b"}};
  const std::string name = reading.text("model.name").value_or("");
  const std::string flavor = reading.text("model.flavor").value_or("");
  const auto found = presets.find(name + " " + flavor);
  if (found != presets.end()) {
    spec.model = model_preset(found->second);
    spec.model_preset = found->second;
    reading.config().has_model = true;
    const std::string meaning = assignment("model.preset", spec.model_preset);
    reading.understood("model.name", meaning);
    reading.understood("model.flavor", meaning);
  } else {
    reading.ignore({"model.name", "model.flavor"}, "the shape of this model is not known here");
    reading.miss("[model]: the file names a model whose shape torchtitan's source holds; read its config.json instead");
  }
  reading.set("training.seq_len", spec.model.sequence, "model.sequence", 1);
  reading.ignore({"model.norm_type", "model.tokenizer_path", "model.hf_assets_path", "model.print_after_conversion"},
                 "changes no size");
}

void read_data_axes(Reading& reading, int64_t& data) {
  Strategy& strategy = reading.config().spec.strategy;
  const std::string table = "parallelism.";
  const int64_t replicas = reading.integer(table + "data_parallel_replicate_degree", 1, 1'000'000).value_or(1);
  const auto shards = reading.integer(table + "data_parallel_shard_degree", -1, 1'000'000);
  const bool sharded = shards.value_or(-1) != 1;
  if (shards && *shards == 0) reading.refuse(table + "data_parallel_shard_degree", "-1 (what is left) or at least 1");
  // Parameters that stay gathered from forward to backward are not sharded when it matters: ZeRO-2.
  const std::string reshard = table + "fsdp_reshard_after_forward";
  const bool stay_gathered = reading.text(reshard).value_or("") == "never";
  if (sharded) strategy.zero_stage = stay_gathered ? 2 : 3;
  std::string meaning = assignment("strategy.zero_stage", strategy.zero_stage);
  reading.understood(reshard, meaning);
  if (shards && *shards > 0) data = replicas * *shards;
  if (shards && *shards > 0 && sharded && replicas > 1) {
    strategy.shard_group = *shards;
    meaning += ", " + assignment("strategy.shard_group", *shards);
    reading.understood(table + "data_parallel_replicate_degree", fmt::format("{} copies of the shards", replicas));
  } else {
    read_other_axis(reading, table + "data_parallel_replicate_degree", replicas, "copies of the sharded model");
  }
  reading.understood(table + "data_parallel_shard_degree", meaning);
  if (!shards) reading.assume(meaning + " (torchtitan shards over all devices left)");
}

// Returns the width of the context axis.
int64_t read_model_axes(Reading& reading) {
  Strategy& strategy = reading.config().spec.strategy;
  const std::string table = "parallelism.";
  if (reading.set(table + "tensor_parallel_degree", strategy.tensor, "strategy.tensor", 1, 1'000'000) &&
      strategy.tensor > 1) {
    strategy.sequence_parallel = true;
    reading.assume("strategy.sequence_parallel = true (torchtitan's tensor parallelism always is)");
  }
  reading.set(table + "pipeline_parallel_degree", strategy.pipeline, "strategy.pipeline", 1, 1'000'000);
  if (const auto schedule = reading.text(table + "pipeline_parallel_schedule")) {
    const bool gpipe = *schedule == "GPipe", plain = *schedule == "1F1B";
    if (gpipe) strategy.schedule = ScheduleKind::gpipe;
    if (gpipe || plain) {
      reading.understood(table + "pipeline_parallel_schedule",
                         assignment("strategy.schedule", to_string(strategy.schedule)));
    } else {
      reading.beyond(table + "pipeline_parallel_schedule", "a schedule that Ridgeline lacks; 1f1b stands in");
    }
  }
  const int64_t context = read_context(reading, table + "context_parallel_degree", ContextKind::ring);
  reading.set(table + "expert_parallel_degree", strategy.expert, "strategy.expert", 1, 1'000'000);
  reading.ignore({"enable_async_tensor_parallel", "disable_loss_parallel", "pipeline_parallel_schedule_csv",
                  "context_parallel_rotate_method"},
                 "how torchtitan runs the same layout", table);
  return context;
}

// A local batch is cut in micro-batches where there is a pipeline; without one it is a micro-batch.
void read_batch(Reading& reading, int64_t data) {
  Strategy& strategy = reading.config().spec.strategy;
  int64_t local = 0;
  for (const char* name : {"training.local_batch_size", "training.batch_size"}) {
    const auto found = reading.integer(name, 1, 1'000'000);
    if (!found) continue;
    local = *found;
    strategy.micro_batch = strategy.pipeline > 1 ? 1 : local;
    reading.understood(name, assignment("strategy.micro_batch", strategy.micro_batch));
  }
  const std::string micro = "parallelism.pipeline_parallel_microbatch_size";
  if (strategy.pipeline > 1) reading.set(micro, strategy.micro_batch, "strategy.micro_batch", 1, 1'000'000);
  reading.ignore(micro, "there is no pipeline");
  const auto global = reading.integer("training.global_batch_size", -1, 1'000'000'000);
  if (global && *global > 0) {
    strategy.global_batch = *global;
    reading.understood("training.global_batch_size", assignment("strategy.global_batch", strategy.global_batch));
  } else if (local > 0 && data > 0) {
    strategy.global_batch = local * data;  // at most 1e18
    reading.assume(
        fmt::format("strategy.global_batch = {} (local batch * data parallel width)", strategy.global_batch));
    reading.ignore("training.global_batch_size", "-1: it follows from the local batch");
  } else {
    reading.ignore("training.global_batch_size", "-1: it follows from the local batch and the devices");
    reading.miss("strategy.global_batch: local_batch_size times the data parallel width, which the file leaves open");
  }
}

void read_optimizer(Reading& reading) {
  TrainSpec& spec = reading.config().spec;
  OptimizerSpec& optimizer = spec.optimizer;
  if (const auto name = reading.text("optimizer.name")) {
    if (*name == "AdamW" || *name == "Adam") reading.ignore("optimizer.name", "AdamW is the optimizer of Ridgeline");
    reading.beyond("optimizer.name", "an optimizer other than AdamW");
  }
  reading.set("optimizer.lr", optimizer.lr, "optimizer.lr");
  reading.set("optimizer.eps", optimizer.epsilon, "optimizer.epsilon");
  reading.set("optimizer.beta1", optimizer.beta1, "optimizer.beta1");
  reading.set("optimizer.beta2", optimizer.beta2, "optimizer.beta2");
  reading.set("optimizer.weight_decay", optimizer.weight_decay, "optimizer.weight_decay");
  reading.set("training.max_norm", optimizer.clip, "optimizer.clip");
  if (!reading.set("training.steps", spec.training.steps, "training.steps")) {
    spec.training.steps = 10'000;
    reading.assume("training.steps = 10000 (default of torchtitan)");
  }
  reading.set("training.seed", spec.training.seed, "training.seed");
  optimizer.warmup_steps = 200;
  bool has_warmup = false;
  for (const char* name : {"lr_scheduler.warmup_steps", "training.warmup_steps"}) {
    has_warmup |= reading.set(name, optimizer.warmup_steps, "optimizer.warmup_steps");
  }
  if (!has_warmup) reading.assume("optimizer.warmup_steps = 200 (default of torchtitan)");
  optimizer.decay = DecayKind::linear;
  optimizer.min_lr = 0;
  reading.assume("optimizer.decay = \"linear\", optimizer.min_lr = 0 (torchtitan's, where the file says nothing else)");
  if (const auto kind = reading.text("lr_scheduler.decay_type")) {
    optimizer.decay = *kind == "cosine" ? DecayKind::cosine : DecayKind::linear;
    if (*kind == "cosine" || *kind == "linear") {
      reading.understood("lr_scheduler.decay_type", assignment("optimizer.decay", *kind));
    }
  }
  for (const char* name : {"lr_scheduler.min_lr_factor", "lr_scheduler.lr_min"}) {
    const auto share = reading.number(name, 0, 1);
    if (!share) continue;
    optimizer.min_lr = *share * optimizer.lr;
    reading.understood(name, assignment("optimizer.min_lr", optimizer.min_lr));
  }
}

void read_recomputation(Reading& reading) {
  Recompute& recompute = reading.config().spec.strategy.recompute;
  const std::string name = "activation_checkpoint.mode";
  const auto mode = reading.text(name);
  if (!mode) return;
  if (*mode == "full") recompute = Recompute::full;
  if (*mode == "full" || *mode == "none") {
    reading.understood(name, assignment("strategy.recompute", to_string(recompute)));
  } else {
    reading.beyond(name, "recomputes some operations or layers; \"none\" stands in, \"full\" is the other bound");
  }
}

}  // namespace

void read_torchtitan(Reading& reading) {
  reading.config().format = "torchtitan TOML";
  TrainSpec& spec = reading.config().spec;
  read_model(reading);
  const int64_t context = read_model_axes(reading);
  int64_t data = 0;
  read_data_axes(reading, data);
  if (data > 0) set_devices(reading, {data, spec.strategy.tensor, spec.strategy.pipeline, context});
  read_batch(reading, data);
  read_optimizer(reading);
  read_recomputation(reading);
  spec.precision.compute = Precision::bf16;
  if (const auto dtype = reading.text("training.mixed_precision_param")) {
    if (*dtype == "float32") spec.precision.compute = Precision::fp32;
    reading.understood("training.mixed_precision_param",
                       assignment("precision.compute", to_string(spec.precision.compute)));
  } else {
    reading.assume("precision.compute = \"bf16\" (torchtitan's mixed precision)");
  }
  if (reading.boolean("checkpoint.enable").value_or(reading.boolean("checkpoint.enable_checkpoint").value_or(false))) {
    reading.set("checkpoint.interval", spec.checkpoint.every, "checkpoint.every");
  }
  for (const char* below : {"job.", "profiling.", "metrics.", "comm.", "checkpoint.", "compile.", "validation.",
                            "memory_estimation.", "fault_tolerance.", "experimental."}) {
    reading.ignore_below(below, "no part of a layout or a model");
  }
  for (const char* below : {"float8.", "mx.", "quantize."}) {
    reading.ignore_below(below, "number formats below 16 bits are not described yet");
  }
  reading.ignore({"training.dataset", "training.dataset_path"}, "tokenised corpora are named by data.path");
}

}  // namespace ridgeline::spec
