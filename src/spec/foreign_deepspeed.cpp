// DeepSpeed's JSON: batch, precision, optimizer and ZeRO; it says nothing of the model.
#include <cmath>
#include <string_view>

#include "core/error.h"
#include "spec/foreign_formats.h"

namespace ridgeline::spec {
namespace {

// train_batch_size = train_micro_batch_size_per_gpu * gradient_accumulation_steps * data parallel devices
void read_batch(Reading& reading) {
  Strategy& strategy = reading.config().spec.strategy;
  const bool has_micro =
      reading.set("/train_micro_batch_size_per_gpu", strategy.micro_batch, "strategy.micro_batch", 1, 1'000'000);
  const bool has_global =
      reading.set("/train_batch_size", strategy.global_batch, "strategy.global_batch", 1, 1'000'000'000);
  const auto steps = reading.integer("/gradient_accumulation_steps", 1, 1'000'000'000);
  if (!has_micro) reading.miss("strategy.micro_batch: the file leaves train_micro_batch_size_per_gpu open");
  if (has_global && has_micro && steps) {
    const int64_t samples = strategy.micro_batch * *steps;
    if (strategy.global_batch % samples != 0) {
      reading.refuse(
          "/train_batch_size",
          fmt::format("a multiple of train_micro_batch_size_per_gpu * gradient_accumulation_steps = {}", samples));
    }
    reading.understood(
        "/gradient_accumulation_steps",
        fmt::format("{} data parallel devices, from the three batch sizes", strategy.global_batch / samples));
    set_devices(reading, {strategy.global_batch / samples, strategy.tensor, strategy.pipeline});
  } else if (steps) {
    const char* known = has_global ? "follows from global_batch, micro_batch and the devices" : "of each device";
    reading.beyond("/gradient_accumulation_steps", fmt::format("{} micro-batches {}", *steps, known));
  }
  if (!has_global) reading.miss("strategy.global_batch: the file leaves train_batch_size open");
}

void read_precision(Reading& reading) {
  PrecisionSpec& precision = reading.config().spec.precision;
  const auto enable = [&](const std::string& name, Precision value) {
    const auto enabled = reading.boolean(name);
    if (!enabled) return;
    if (*enabled) precision.compute = value;
    if (*enabled) reading.understood(name, assignment("precision.compute", to_string(value)));
    if (!*enabled) reading.ignore(name, "false, as it is anyway");
  };
  for (const char* table : {"/bf16", "/bfloat16"}) enable(std::string(table) + "/enabled", Precision::bf16);
  enable("/fp16/enabled", Precision::fp16);
  if (const auto power = reading.integer("/fp16/initial_scale_power", 0, 99)) {
    precision.initial_loss_scale = std::ldexp(1.0, static_cast<int>(*power));
    reading.understood("/fp16/initial_scale_power",
                       assignment("precision.initial_loss_scale", precision.initial_loss_scale));
  }
  reading.set("/fp16/loss_scale_window", precision.loss_scale_window, "precision.loss_scale_window", 1);
  if (const auto scale = reading.number("/fp16/loss_scale")) {
    if (*scale == 0) reading.ignore("/fp16/loss_scale", "0: it follows the gradients, as in Ridgeline");
    if (*scale != 0) reading.beyond("/fp16/loss_scale", "a loss scale that does not change");
  }
  reading.ignore({"/fp16/hysteresis", "/fp16/min_loss_scale", "/fp16/consecutive_hysteresis", "/fp16/auto_cast"},
                 "Ridgeline's loss scale has no such key");
}

void read_zero(Reading& reading) {
  const std::string zero = "/zero_optimization/";
  read_zero_stage(reading, zero + "stage");
  if (const auto elements = reading.integer(zero + "reduce_bucket_size", 1)) {
    double& mib = reading.config().spec.strategy.bucket_mib;
    mib = static_cast<double>(*elements) * 4 / (1 << 20);
    reading.understood(zero + "reduce_bucket_size", assignment("strategy.bucket_mib", mib) + " (elements of fp32)");
  }
  for (const char* offload : {"offload_optimizer", "offload_param"}) {
    const std::string name = zero + offload + "/device";
    const auto device = reading.text(name);
    if (!device) continue;
    if (*device == "none") {
      reading.ignore(name, "none: nothing leaves the device");
    } else if (*device == "cpu" && std::string_view(offload) == "offload_optimizer") {
      reading.config().spec.strategy.offload_optimizer = true;
      reading.understood(name, "strategy.offload_optimizer = true");
    } else {
      reading.beyond(name, fmt::format("{} kept in {} memory", offload + 8, *device));
    }
    reading.ignore_below(zero + offload, "how offloading goes on");
  }
  if (const auto width = reading.integer(zero + "zero_hpz_partition_size", 1, 1'000'000)) {
    read_other_axis(reading, zero + "zero_hpz_partition_size", *width, "parameters sharded");
  }
  reading.ignore({"overlap_comm", "contiguous_gradients", "reduce_scatter", "round_robin_gradients"},
                 "Ridgeline always reduces contiguous buckets while backward runs", zero);
  reading.ignore({"allgather_partitions", "allgather_bucket_size", "sub_group_size", "stage3_max_live_parameters",
                  "stage3_max_reuse_distance", "stage3_prefetch_bucket_size", "stage3_param_persistence_threshold",
                  "stage3_gather_16bit_weights_on_model_save", "elastic_checkpoint"},
                 "tunes DeepSpeed's own buffers", zero);
}

void read_optimizer(Reading& reading) {
  OptimizerSpec& optimizer = reading.config().spec.optimizer;
  if (const auto type = reading.text("/optimizer/type")) {
    const bool adam = *type == "AdamW" || *type == "Adam" || *type == "FusedAdam" || *type == "DeepSpeedCPUAdam";
    if (adam) reading.ignore("/optimizer/type", "AdamW is the optimizer of Ridgeline");
    if (!adam) reading.beyond("/optimizer/type", "an optimizer other than AdamW");
  }
  const std::string params = "/optimizer/params/";
  reading.set(params + "lr", optimizer.lr, "optimizer.lr");
  reading.set(params + "eps", optimizer.epsilon, "optimizer.epsilon");
  reading.set(params + "weight_decay", optimizer.weight_decay, "optimizer.weight_decay");
  if (const auto betas = reading.numbers(params + "betas", 2)) {
    optimizer.beta1 = (*betas)[0];
    optimizer.beta2 = (*betas)[1];
    reading.understood(params + "betas",
                       fmt::format("optimizer.beta1 = {}, optimizer.beta2 = {}", optimizer.beta1, optimizer.beta2));
  }
  reading.set("/gradient_clipping", optimizer.clip, "optimizer.clip");
}

void read_scheduler(Reading& reading) {
  OptimizerSpec& optimizer = reading.config().spec.optimizer;
  const auto type = reading.text("/scheduler/type");
  if (!type) return;
  if (*type != "WarmupLR" && *type != "WarmupDecayLR" && *type != "WarmupCosineLR") {
    reading.beyond("/scheduler/type", "a course of the learning rate that Ridgeline lacks");
    return;
  }
  optimizer.decay = *type == "WarmupLR"        ? DecayKind::constant
                    : *type == "WarmupDecayLR" ? DecayKind::linear
                                               : DecayKind::cosine;
  reading.understood("/scheduler/type", assignment("optimizer.decay", to_string(optimizer.decay)));
  const std::string params = "/scheduler/params/";
  reading.set(params + "warmup_num_steps", optimizer.warmup_steps, "optimizer.warmup_steps");
  reading.set(params + "total_num_steps", optimizer.decay_steps, "optimizer.decay_steps");
  reading.set(params + "warmup_max_lr", optimizer.lr, "optimizer.lr");
  reading.ignore({"warmup_min_lr", "warmup_type", "warmup_min_ratio", "cos_min_ratio"},
                 "Ridgeline warms up linearly from 0", params);
}

}  // namespace

void read_deepspeed(Reading& reading) {
  reading.config().format = "DeepSpeed JSON";
  Strategy& strategy = reading.config().spec.strategy;
  reading.set("/tensor_parallel/autotp_size", strategy.tensor, "strategy.tensor", 1, 1'000'000);
  reading.set("/pipeline/stages", strategy.pipeline, "strategy.pipeline", 1, 1'000'000);
  if (const auto width = reading.integer("/sequence_parallel_size", 1, 1'000'000)) {
    read_other_axis(reading, "/sequence_parallel_size", *width, "the sequence cut");
  }
  read_batch(reading);
  read_precision(reading);
  read_zero(reading);
  read_optimizer(reading);
  read_scheduler(reading);
  reading.ignore_below("/activation_checkpointing/", "says how to recompute; whether, the training script says");
  for (const char* below : {"/flops_profiler/", "/tensorboard/", "/wandb/", "/csv_monitor/", "/comms_logger/", "/aio/",
                            "/autotuning/", "/elasticity/"}) {
    reading.ignore_below(below, "no part of a layout or a model");
  }
  reading.ignore({"/steps_per_print", "/wall_clock_breakdown", "/prescale_gradients", "/gradient_predivide_factor",
                  "/zero_allow_untested_optimizer", "/zero_force_ds_cpu_optimizer", "/communication_data_type",
                  "/sparse_gradients", "/dump_state", "/memory_breakdown"},
                 "no part of a layout or a model");
}

}  // namespace ridgeline::spec
