// nanotron's YAML: a Llama-like model, the three axes, batch and optimizer.
#include "core/error.h"
#include "spec/foreign_formats.h"

namespace ridgeline::spec {
namespace {

void read_model(Reading& reading) {
  TrainSpec& spec = reading.config().spec;
  const std::string table = "model.model_config.";
  const bool qwen = reading.boolean(table + "is_qwen2_config").value_or(false);
  read_llama_shape(reading, table, qwen ? "qwen2" : "llama");
  reading.ignore({"is_llama_config", "is_qwen2_config", "is_qwen2_moe_config"}, "the family of the model", table);
  const bool has_sequence = reading.set("tokens.sequence_length", spec.model.sequence, "model.sequence", 1);
  if (!has_sequence && !reading.set(table + "max_position_embeddings", spec.model.sequence, "model.sequence", 1)) {
    reading.miss("model.sequence: the file has no tokens.sequence_length");
  }
  reading.ignore(table + "max_position_embeddings", "tokens.sequence_length says how long samples are");
  if (reading.has(table + "moe_config.num_experts")) {
    reading.refuse(table + "moe_config.num_experts", "no experts: nanotron's mixtures are not read yet");
  }
  reading.set("model.init_method.std", spec.model.init_std, "model.init_std");
  if (const auto dtype = reading.text("model.dtype")) {
    Precision& compute = spec.precision.compute;
    if (*dtype == "bfloat16") compute = Precision::bf16;
    if (*dtype == "float16") compute = Precision::fp16;
    if (*dtype == "bfloat16" || *dtype == "float16" || *dtype == "float32") {
      reading.understood("model.dtype", assignment("precision.compute", to_string(compute)));
    }
  }
  reading.ignore("model.make_vocab_size_divisible_by", "nothing is padded in Ridgeline: shards may differ by a row");
  reading.set("model.ddp_bucket_cap_mb", spec.strategy.bucket_mib, "strategy.bucket_mib");
}

// Returns the width of the data axis, 0 where the file does not say.
int64_t read_axes(Reading& reading) {
  Strategy& strategy = reading.config().spec.strategy;
  const std::string table = "parallelism.";
  reading.set(table + "tp", strategy.tensor, "strategy.tensor", 1, 1'000'000);
  reading.set(table + "pp", strategy.pipeline, "strategy.pipeline", 1, 1'000'000);
  const int64_t data = reading.integer(table + "dp", 1, 1'000'000).value_or(0);
  const int64_t context = read_context(reading, table + "context_parallel_size", ContextKind::ring);
  const int64_t expert = reading.integer(table + "expert_parallel_size", 1, 1'000'000).value_or(1);
  read_other_axis(reading, table + "expert_parallel_size", expert, "experts spread");
  if (data > 0) {
    set_devices(reading, {data, strategy.tensor, strategy.pipeline, context});
    reading.understood(table + "dp", fmt::format("{} replicas: {} devices in all", data, reading.config().devices));
  }
  if (const auto engine = reading.text(table + "pp_engine")) {
    if (*engine != "1f1b" && *engine != "afab") reading.refuse(table + "pp_engine", "\"1f1b\" or \"afab\"");
    strategy.schedule = *engine == "afab" ? ScheduleKind::gpipe : ScheduleKind::one_f_one_b;
    reading.understood(table + "pp_engine", assignment("strategy.schedule", to_string(strategy.schedule)));
  }
  if (const auto mode = reading.text(table + "tp_mode")) {
    const bool scatter = *mode == "REDUCE_SCATTER" || *mode == "reduce_scatter";
    if (!scatter && *mode != "ALL_REDUCE" && *mode != "all_reduce") {
      reading.refuse(table + "tp_mode", "\"ALL_REDUCE\" or \"REDUCE_SCATTER\"");
    }
    strategy.sequence_parallel = scatter;
    reading.understood(table + "tp_mode", assignment("strategy.sequence_parallel", scatter));
  }
  if (const auto recompute = reading.boolean(table + "recompute_layer")) {
    if (*recompute) strategy.recompute = Recompute::full;
    reading.understood(table + "recompute_layer", assignment("strategy.recompute", to_string(strategy.recompute)));
  }
  reading.ignore({"tp_linear_async_communication", "tp_recompute_allgather", "moe_layer_recompute"},
                 "how nanotron runs the same layout", table);
  return data;
}

void read_batch(Reading& reading, int64_t data) {
  Strategy& strategy = reading.config().spec.strategy;
  const bool has_micro =
      reading.set("tokens.micro_batch_size", strategy.micro_batch, "strategy.micro_batch", 1, 1'000'000);
  const auto steps = reading.integer("tokens.batch_accumulation_per_replica", 1, 1'000);
  if (has_micro && steps && data > 0 && strategy.micro_batch * *steps <= 1'000'000'000 / data) {
    strategy.global_batch = strategy.micro_batch * *steps * data;
    reading.understood("tokens.batch_accumulation_per_replica",
                       assignment("strategy.global_batch", strategy.global_batch));
  } else {
    reading.miss("strategy.global_batch: micro_batch_size * batch_accumulation_per_replica * dp is not in the file");
  }
}

void read_optimizer(Reading& reading) {
  TrainSpec& spec = reading.config().spec;
  OptimizerSpec& optimizer = spec.optimizer;
  read_zero_stage(reading, "optimizer.zero_stage");
  const std::string factory = "optimizer.optimizer_factory.";
  for (const std::string& table : {factory, std::string("optimizer.")}) {  // older files have them one level up
    reading.set(table + "adam_beta1", optimizer.beta1, "optimizer.beta1");
    reading.set(table + "adam_beta2", optimizer.beta2, "optimizer.beta2");
    reading.set(table + "adam_eps", optimizer.epsilon, "optimizer.epsilon");
  }
  if (const auto name = reading.text(factory + "name")) {
    if (*name == "adamW") reading.ignore(factory + "name", "AdamW is the optimizer of Ridgeline");
    reading.beyond(factory + "name", "an optimizer other than AdamW");
  }
  reading.set("optimizer.weight_decay", optimizer.weight_decay, "optimizer.weight_decay");
  reading.set("optimizer.clip_grad", optimizer.clip, "optimizer.clip");
  const std::string rate = "optimizer.learning_rate_scheduler.";
  reading.set(rate + "learning_rate", optimizer.lr, "optimizer.lr");
  reading.set(rate + "min_decay_lr", optimizer.min_lr, "optimizer.min_lr");
  reading.set(rate + "lr_warmup_steps", optimizer.warmup_steps, "optimizer.warmup_steps");
  if (const auto steps = reading.integer(rate + "lr_decay_steps")) {
    optimizer.decay_steps = *steps + optimizer.warmup_steps;
    reading.understood(rate + "lr_decay_steps",
                       assignment("optimizer.decay_steps", optimizer.decay_steps) + " (with the warm-up)");
  }
  if (const auto style = reading.text(rate + "lr_decay_style")) {
    optimizer.decay = *style == "linear" ? DecayKind::linear : DecayKind::cosine;
    if (*style == "linear" || *style == "cosine") {
      reading.understood(rate + "lr_decay_style", assignment("optimizer.decay", *style));
    }
  }
  reading.ignore(rate + "lr_warmup_style", "Ridgeline warms up linearly");
  reading.ignore({"accumulate_grad_in_fp32", "optimizer_factory.torch_adam_is_fused", "torch_adam_is_fused"},
                 "Ridgeline always accumulates in fp32, in one pass", "optimizer.");
}

}  // namespace

void read_nanotron(Reading& reading) {
  reading.config().format = "nanotron YAML";
  TrainSpec& spec = reading.config().spec;
  read_model(reading);
  read_batch(reading, read_axes(reading));
  read_optimizer(reading);
  reading.set("tokens.train_steps", spec.training.steps, "training.steps");
  if (const auto every = reading.integer("tokens.val_check_interval", -1)) {
    if (*every > 0) spec.evaluation.every = *every;
    reading.understood("tokens.val_check_interval", assignment("evaluation.every", spec.evaluation.every));
  }
  reading.set("general.seed", spec.training.seed, "training.seed");
  reading.set("checkpoints.checkpoint_interval", spec.checkpoint.every, "checkpoint.every");
  reading.ignore_below("data_stages.", "tokenised corpora are named by data.path");
  for (const char* below : {"general.", "checkpoints.", "logging.", "tokenizer.", "profiler", "lighteval", "s3_upload",
                            "metrics_logging.", "tokens.", "model.init_method."}) {
    reading.ignore_below(below, "no part of a layout or a model");
  }
}

}  // namespace ridgeline::spec
