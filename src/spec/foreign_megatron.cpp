// Megatron-LM's arguments (and Megatron-DeepSpeed's, which differ in a few): what each means.
// Defaults are those of Megatron-LM's arguments.py; what follows from them is listed as assumed.
#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "spec/foreign_formats.h"
#include "spec/foreign_megatron_arguments.h"

namespace ridgeline::spec {
namespace {

void read_heads(Reading& reading) {
  ModelSpec& model = reading.config().spec.model;
  reading.require("--num-attention-heads", model.heads, "model.heads", "the model's shape");
  if (reading.boolean("--group-query-attention").value_or(false)) {
    if (!reading.set("--num-query-groups", model.kv_heads, "model.kv_heads", 1)) {
      model.kv_heads = 1;
      reading.assume("model.kv_heads = 1 (default of --num-query-groups)");
    }
    reading.understood("--group-query-attention", assignment("model.kv_heads", model.kv_heads));
  } else {
    reading.ignore("--num-query-groups", "without --group-query-attention every head has its own key and value");
  }
  // Megatron-DeepSpeed's name for the same.
  reading.set("--num-key-value-heads", model.kv_heads, "model.kv_heads", 1);
  reading.set("--kv-channels", model.head_width, "model.head_width", 1);
}

void read_mlp(Reading& reading) {
  ModelSpec& model = reading.config().spec.model;
  reading.set("--swiglu", model.gated_mlp, "model.gated_mlp");
  if (!reading.set("--ffn-hidden-size", model.ffn_hidden, "model.ffn_hidden", 1) && model.gated_mlp) {
    // So that three matrices hold what two of 4 * hidden would, in steps of 64.
    model.ffn_hidden = 4 * model.hidden * 2 / 3 / 64 * 64;
    reading.assume(
        fmt::format("model.ffn_hidden = {} (8/3 of hidden, in steps of 64, with --swiglu)", model.ffn_hidden));
  }
  reading.ignore({"--squared-relu", "--openai-gelu", "--onnx-safe", "--quick-geglu"},
                 "another function at the same place: values change, sizes do not");
  if (!reading.set("--num-experts", model.experts, "model.experts", 1)) return;
  reading.set("--moe-router-topk", model.experts_per_token, "model.experts_per_token", 1);
  reading.set("--moe-ffn-hidden-size", model.expert_ffn_hidden, "model.expert_ffn_hidden", 1);
  reading.set("--moe-shared-expert-intermediate-size", model.shared_ffn_hidden, "model.shared_ffn_hidden", 1);
  if (reading.has("--moe-layer-freq")) {
    const auto every = reading.integer("--moe-layer-freq", 1, 1);
    if (every) reading.ignore("--moe-layer-freq", "1: every layer has experts, as in Ridgeline");
  }
}

void read_family(Reading& reading) {
  ModelSpec& model = reading.config().spec.model;
  if (const auto norm = reading.text("--normalization")) {
    if (*norm != "RMSNorm" && *norm != "LayerNorm") reading.refuse("--normalization", "LayerNorm or RMSNorm");
    model.norm = *norm == "RMSNorm" ? Norm::rms_norm : Norm::layer_norm;
    reading.understood("--normalization", assignment("model.norm", to_string(model.norm)));
  }
  if (const auto positions = reading.text("--position-embedding-type")) {
    if (*positions != "learned_absolute" && *positions != "rope") {
      reading.refuse("--position-embedding-type", "learned_absolute or rope: no other positions can be described");
    }
    model.positions = *positions == "rope" ? Positions::rotary : Positions::learned;
    reading.understood("--position-embedding-type", assignment("model.positions", to_string(model.positions)));
  }
  if (reading.boolean("--use-rotary-position-embeddings").value_or(false)) {
    model.positions = Positions::rotary;
    reading.understood("--use-rotary-position-embeddings", "model.positions = \"rotary\"");
  }
  const bool without = reading.boolean("--disable-bias-linear").value_or(false);
  const bool of_qkv = reading.boolean("--add-qkv-bias").value_or(false);
  if (without) model.biases = of_qkv ? Biases::qkv : Biases::none;
  for (const char* name : {"--disable-bias-linear", "--add-qkv-bias"}) {
    reading.understood(name, assignment("model.biases", to_string(model.biases)));
  }
  for (const char* name : {"--norm-epsilon", "--layernorm-epsilon"}) {
    reading.set(name, model.norm_epsilon, "model.norm_epsilon");
  }
  reading.set("--qk-layernorm", model.qk_norm, "model.qk_norm");
  if (reading.boolean("--untie-embeddings-and-output-weights").value_or(false)) {
    model.tied = false;
    reading.understood("--untie-embeddings-and-output-weights", "model.tied = false");
  }
}

void read_vocabulary(Reading& reading) {
  ModelSpec& model = reading.config().spec.model;
  const auto tokenizer = reading.text("--tokenizer-type");
  const bool given = reading.set("--vocab-size", model.vocabulary, "model.vocabulary", 2);
  if (!given && tokenizer == "GPT2BPETokenizer") {
    model.vocabulary = 50257;
    reading.understood("--tokenizer-type", "model.vocabulary = 50257");
  } else if (!given && tokenizer == "Llama2Tokenizer") {
    model.vocabulary = 32000;
    reading.understood("--tokenizer-type", "model.vocabulary = 32000");
  } else if (!given) {
    reading.miss("model.vocabulary: the tokenizer's file says it, not this one");
  }
  reading.ignore("--tokenizer-type", "of the data, not of the model");
  reading.ignore("--make-vocab-size-divisible-by", "nothing is padded in Ridgeline: shards may differ by a row");
}

void read_dropout(Reading& reading) {
  ModelSpec& model = reading.config().spec.model;
  const auto read = [&](const char* name, double& target, const char* key) {
    if (reading.set(name, target, key)) return;
    target = 0.1;
    reading.assume(fmt::format("{} = 0.1 (default of {})", key, name));
  };
  read("--hidden-dropout", model.dropout, "model.dropout");
  read("--attention-dropout", model.attention_dropout, "model.attention_dropout");
}

void read_model(Reading& reading) {
  ModelSpec& model = reading.config().spec.model;
  reading.config().has_model = true;
  reading.require("--num-layers", model.layers, "model.layers", "the model's shape");
  reading.require("--hidden-size", model.hidden, "model.hidden", "the model's shape");
  if (model.hidden > 1'000'000) reading.refuse("--hidden-size", "an integer 1 to 1000000");
  reading.require("--seq-length", model.sequence, "model.sequence", "the length of a sample");
  read_heads(reading);
  read_family(reading);
  read_mlp(reading);
  read_vocabulary(reading);
  read_dropout(reading);
  reading.set("--init-method-std", model.init_std, "model.init_std");
  reading.set("--embed-layernorm", model.embedding_norm, "model.embedding_norm");  // of BigScience's fork
  if (const auto most = reading.integer("--max-position-embeddings", 1)) {
    const bool more = model.positions == Positions::learned && *most != model.sequence;
    if (more) reading.beyond("--max-position-embeddings", "more learned positions than a sample has tokens");
    reading.ignore("--max-position-embeddings", "--seq-length says how long samples are");
  }
  reading.set("--rotary-base", model.rotary.base, "model.rotary_base");
  reading.ignore({"--rotary-percent", "--use-rope-scaling", "--rotary-seq-len-interpolation-factor",
                  "--no-position-embedding", "--no-rope-fusion", "--apply-layernorm-1p"},
                 "changes values, not sizes");
}

// Stages of equal size but for the first and the last.
void read_uneven_stages(Reading& reading) {
  TrainSpec& spec = reading.config().spec;
  const char* first_name = "--decoder-first-pipeline-num-layers";
  const char* last_name = "--decoder-last-pipeline-num-layers";
  const auto first = reading.integer(first_name, 1, spec.model.layers);
  const auto last = reading.integer(last_name, 1, spec.model.layers);
  if (!first && !last) return;
  const int64_t stages = spec.strategy.pipeline, given = (first ? 1 : 0) + (last ? 1 : 0);
  const int64_t left = spec.model.layers - first.value_or(0) - last.value_or(0);
  if (stages > 100'000 || stages <= given || left <= 0 || left % (stages - given) != 0) {
    reading.refuse(first ? first_name : last_name,
                   fmt::format("numbers that leave a multiple of the other {} stages of {} layers", stages - given,
                               spec.model.layers));
  }
  std::vector<int64_t>& layers = spec.strategy.stage_layers;
  layers.assign(static_cast<size_t>(stages), left / (stages - given));
  if (first) layers.front() = *first;
  if (last) layers.back() = *last;
  for (const char* name : {first_name, last_name}) {
    reading.understood(name, fmt::format("strategy.stage_layers = [{}, ...]", layers.front()));
  }
}

// Interleaving, as chunks of a stage or as layers of a chunk.
void read_virtual_pipeline(Reading& reading) {
  const ModelSpec& model = reading.config().spec.model;
  Strategy& strategy = reading.config().spec.strategy;
  const std::string chunks = "--num-virtual-stages-per-pipeline-rank";
  const std::string layers = "--num-layers-per-virtual-pipeline-stage";
  if (!strategy.stage_layers.empty()) {
    for (const std::string& name : {chunks, layers}) {
      reading.beyond(name, "interleaved 1F1B over stages that differ in size; plain 1f1b stands in");
    }
    return;
  }
  reading.set(chunks, strategy.virtual_pipeline, "strategy.virtual_pipeline", 1, 1'000);
  const auto count = reading.integer(layers, 1, 100'000);
  if (!count) return;
  if (model.layers % (strategy.pipeline * *count) != 0) {
    reading.refuse(layers, fmt::format("a number that divides the {} layers of a stage ({} layers, {} stages)",
                                       model.layers / strategy.pipeline, model.layers, strategy.pipeline));
  }
  strategy.virtual_pipeline = model.layers / (strategy.pipeline * *count);
  reading.understood(layers, assignment("strategy.virtual_pipeline", strategy.virtual_pipeline));
}

// Returns the devices that further axes take.
int64_t read_axes(Reading& reading) {
  Strategy& strategy = reading.config().spec.strategy;
  constexpr int64_t most = 1'000'000;
  reading.set("--tensor-model-parallel-size", strategy.tensor, "strategy.tensor", 1, most);
  reading.set("--pipeline-model-parallel-size", strategy.pipeline, "strategy.pipeline", 1, most);
  reading.set("--sequence-parallel", strategy.sequence_parallel, "strategy.sequence_parallel");
  read_uneven_stages(reading);
  read_virtual_pipeline(reading);
  read_context(reading, "--context-parallel-size", ContextKind::ring);
  const int64_t context = read_context(reading, "--ds-sequence-parallel-size", ContextKind::all_to_all);
  for (const char* name : {"--expert-model-parallel-size", "--moe-expert-parallel-size"}) {
    reading.set(name, strategy.expert, "strategy.expert", 1, most);
  }
  reading.set("--expert-tensor-parallel-size", strategy.expert_tensor, "strategy.expert_tensor", 1, most);
  if (reading.boolean("--use-distributed-optimizer").value_or(false)) {
    strategy.zero_stage = 1;
    reading.understood("--use-distributed-optimizer", "strategy.zero_stage = 1");
  }
  read_zero_stage(reading, "--zero-stage");
  return context;
}

void read_recomputation(Reading& reading) {
  Recompute& recompute = reading.config().spec.strategy.recompute;
  const auto understood = [&](const char* name) {
    const char* remark =
        recompute == Recompute::selective ? " (Megatron's repeats attention scores, Ridgeline's norms and GELU)" : "";
    reading.understood(name, assignment("strategy.recompute", to_string(recompute)) + remark);
  };
  if (const auto granularity = reading.text("--recompute-granularity")) {
    if (*granularity != "full" && *granularity != "selective") {
      reading.refuse("--recompute-granularity", "full or selective");
    }
    recompute = *granularity == "full" ? Recompute::full : Recompute::selective;
    understood("--recompute-granularity");
  }
  for (const char* name :
       {"--checkpoint-activations", "--deepspeed-activation-checkpointing", "--recompute-activations"}) {
    if (!reading.boolean(name).value_or(false)) continue;
    recompute = std::string(name) == "--recompute-activations" ? Recompute::selective : Recompute::full;
    understood(name);
  }
  const bool block = reading.text("--recompute-method") == "block";
  if (block) reading.beyond("--recompute-method", "recomputes the first layers of each stage alone; all stand in");
  reading.ignore("--recompute-method", "uniform: all layers, as in Ridgeline");
  for (const char* name : {"--recompute-num-layers", "--checkpoint-num-layers"}) {
    const auto count = reading.integer(name, 1, 100'000);
    if (count && (block || *count > 1)) {
      reading.beyond(name,
                     fmt::format("{} layers {}", *count, block ? "a stage are recomputed" : "are recomputed at once"));
    }
    reading.ignore(name, "1: each layer by itself, as in Ridgeline");
  }
  if (reading.has("--recompute-modules")) reading.beyond("--recompute-modules", "the modules that selective repeats");
}

// Devices from the launcher's words: torchrun, torch.distributed.launch, deepspeed.
void read_devices(Reading& reading, int64_t others) {
  const auto count = [&](std::initializer_list<const char*> names) {
    int64_t found = 0;
    for (const char* name : names) {
      const auto value = reading.integer(name, 1, 100'000);
      if (value) found = *value;
    }
    return found;
  };
  const int64_t nodes = count({"--nnodes", "--num-nodes", "--nodes"});
  const int64_t each = count({"--nproc-per-node", "--num-gpus", "--ntasks-per-node", "--gpus-per-node"});
  const auto described = [&](std::initializer_list<const char*> names, const std::string& meaning) {
    for (const char* name : names) reading.understood(name, meaning);
  };
  if (each == 0 || (nodes == 0 && !reading.has("--standalone") && reading.has("--nnodes"))) return;
  const int64_t devices = std::max<int64_t>(nodes, 1) * each;
  reading.config().devices = devices;
  described(
      {"--nnodes", "--num-nodes", "--nodes", "--nproc-per-node", "--num-gpus", "--ntasks-per-node", "--gpus-per-node"},
      fmt::format("{} devices in all", devices));
  const int64_t width = data_width(reading, others);
  reading.assume(fmt::format("{} data parallel replicas ({} devices)", width, devices));
}

void read_batch(Reading& reading, int64_t others) {
  Strategy& strategy = reading.config().spec.strategy;
  if (!reading.set("--micro-batch-size", strategy.micro_batch, "strategy.micro_batch", 1, 1'000'000)) {
    reading.miss("strategy.micro_batch: the file has no --micro-batch-size");
  }
  if (!reading.set("--global-batch-size", strategy.global_batch, "strategy.global_batch", 1, 1'000'000'000)) {
    const int64_t width = data_width(reading, others);
    if (width > 0) strategy.global_batch = strategy.micro_batch * width;
    if (width > 0) reading.assume(assignment("strategy.global_batch", strategy.global_batch) + " (a micro-batch each)");
    if (width == 0) reading.miss("strategy.global_batch: the file has no --global-batch-size");
  }
  if (reading.has("--rampup-batch-size")) reading.beyond("--rampup-batch-size", "a batch that grows at the start");
}

void read_precision(Reading& reading) {
  Precision& compute = reading.config().spec.precision.compute;
  for (const auto& [name, value] : {std::pair{"--bf16", Precision::bf16}, {"--fp16", Precision::fp16}}) {
    if (!reading.boolean(name).value_or(false)) continue;
    compute = value;
    reading.understood(name, assignment("precision.compute", to_string(value)));
  }
  for (const char* name : {"--fp8-format", "--fp8-hybrid", "--fp4-format"}) {
    if (reading.has(name)) reading.beyond(name, "matrix products in less than 16 bits");
  }
  reading.set("--initial-loss-scale", reading.config().spec.precision.initial_loss_scale,
              "precision.initial_loss_scale");
  reading.set("--loss-scale-window", reading.config().spec.precision.loss_scale_window, "precision.loss_scale_window",
              1);
}

// Steps, or samples that are as many steps of the global batch.
void read_steps(Reading& reading, const std::string& name, int64_t& target, const std::string& key) {
  if (reading.set("--" + name + "-iters", target, key)) return;
  const std::string samples_name = "--" + name + "-samples";
  const auto samples = reading.integer(samples_name);
  if (!samples) return;
  target = *samples / reading.config().spec.strategy.global_batch;
  reading.understood(samples_name, assignment(key, target) + " (samples / global batch)");
}

void read_optimizer(Reading& reading) {
  TrainSpec& spec = reading.config().spec;
  OptimizerSpec& optimizer = spec.optimizer;
  reading.set("--lr", optimizer.lr, "optimizer.lr");
  optimizer.min_lr = 0;
  if (!reading.set("--min-lr", optimizer.min_lr, "optimizer.min_lr")) {
    reading.assume("optimizer.min_lr = 0 (default of --min-lr)");
  }
  optimizer.decay = DecayKind::linear;
  if (const auto style = reading.text("--lr-decay-style")) {
    const bool known = *style == "constant" || *style == "linear" || *style == "cosine" || *style == "WSD";
    if (*style == "constant") optimizer.decay = DecayKind::constant;
    if (*style == "cosine") optimizer.decay = DecayKind::cosine;
    if (*style == "WSD") optimizer.decay = DecayKind::warmup_stable_decay;
    if (known) reading.understood("--lr-decay-style", assignment("optimizer.decay", to_string(optimizer.decay)));
    if (!known) reading.beyond("--lr-decay-style", "a course that Ridgeline lacks; linear stands in");
  } else {
    reading.assume("optimizer.decay = \"linear\" (default of --lr-decay-style)");
  }
  read_steps(reading, "train", spec.training.steps, "training.steps");
  read_steps(reading, "lr-decay", optimizer.decay_steps, "optimizer.decay_steps");
  read_steps(reading, "lr-warmup", optimizer.warmup_steps, "optimizer.warmup_steps");
  if (const auto share = reading.number("--lr-warmup-fraction", 0, 1)) {
    const int64_t whole = optimizer.decay_steps > 0 ? optimizer.decay_steps : spec.training.steps;
    optimizer.warmup_steps = static_cast<int64_t>(*share * static_cast<double>(whole));
    reading.understood("--lr-warmup-fraction", assignment("optimizer.warmup_steps", optimizer.warmup_steps));
  }
  reading.set("--adam-beta1", optimizer.beta1, "optimizer.beta1");
  if (!reading.set("--adam-beta2", optimizer.beta2, "optimizer.beta2")) {
    optimizer.beta2 = 0.999;
    reading.assume("optimizer.beta2 = 0.999 (default of --adam-beta2)");
  }
  reading.set("--adam-eps", optimizer.epsilon, "optimizer.epsilon");
  if (!reading.set("--weight-decay", optimizer.weight_decay, "optimizer.weight_decay")) {
    optimizer.weight_decay = 0.01;
    reading.assume("optimizer.weight_decay = 0.01 (default of --weight-decay)");
  }
  reading.set("--clip-grad", optimizer.clip, "optimizer.clip");
  if (const auto name = reading.text("--optimizer")) {
    if (*name == "adam") reading.ignore("--optimizer", "AdamW is the optimizer of Ridgeline");
    reading.beyond("--optimizer", "an optimizer other than AdamW");
  }
  for (const char* name : {"--cpu-optimizer", "--optimizer-cpu-offload", "--use-precision-aware-optimizer"}) {
    if (reading.has(name)) reading.beyond(name, "optimizer state elsewhere or in other formats");
  }
}

void ignore_the_rest(Reading& reading) {
  reading.ignore({"--overlap-grad-reduce",
                  "--overlap-param-gather",
                  "--no-async-tensor-model-parallel-allreduce",
                  "--tp-comm-overlap",
                  "--use-flash-attn",
                  "--attention-backend",
                  "--use-mcore-models",
                  "--transformer-impl",
                  "--no-masked-softmax-fusion",
                  "--no-bias-gelu-fusion",
                  "--no-bias-dropout-fusion",
                  "--no-gradient-accumulation-fusion",
                  "--cross-entropy-loss-fusion",
                  "--attention-softmax-in-fp32",
                  "--accumulate-allreduce-grads-in-fp32",
                  "--distributed-backend",
                  "--DDP-impl",
                  "--moe-grouped-gemm",
                  "--moe-token-dispatcher-type",
                  "--moe-permute-fusion",
                  "--manual-gc",
                  "--cp-comm-type"},
                 "how Megatron runs the same layout");
  reading.ignore({"--moe-router-load-balancing-type", "--moe-aux-loss-coeff", "--moe-router-pre-softmax",
                  "--moe-z-loss-coeff", "--moe-router-score-function", "--moe-router-dtype"},
                 "of the router's loss and scale; no size changes");
  reading.ignore(
      {"--data-path", "--train-data-path", "--valid-data-path", "--data-cache-path", "--split", "--vocab-file",
       "--merge-file", "--tokenizer-model", "--num-workers", "--mock-data", "--no-create-attention-mask-in-dataloader"},
      "tokenised corpora are named by data.path");
  reading.ignore({"--save", "--load", "--log-interval", "--eval-iters", "--tensorboard-dir", "--wandb-project",
                  "--wandb-exp-name", "--log-throughput", "--exit-interval", "--no-load-optim", "--no-load-rng",
                  "--ckpt-format", "--distributed-timeout-minutes", "--exit-duration-in-mins", "--profile",
                  "--tensorboard-queue-size", "--log-timers-to-tensorboard", "--save-dir", "--timing-log-level"},
                 "no part of a layout or a model");
  reading.ignore({"--node-rank", "--master-addr", "--master-port", "--rdzv-id", "--rdzv-backend", "--rdzv-endpoint",
                  "--hostfile", "--standalone", "--max-restarts", "--tee", "--log-dir", "--rdzv-conf"},
                 "of the launcher");
  reading.ignore({"--deepspeed", "--deepspeed_config", "--no-pipeline-parallel"},
                 "explain the DeepSpeed JSON by itself");
}

}  // namespace

void read_megatron(const std::string& text, const std::string& file, ForeignConfig& config) {
  MegatronArguments arguments = megatron_arguments(text, file);
  config.format = "Megatron-LM arguments";
  Reading reading(config, std::move(arguments.settings), file);
  for (std::string& note : arguments.notes) config.assumed.push_back(std::move(note));
  read_model(reading);
  const int64_t others = read_axes(reading);
  read_recomputation(reading);
  read_devices(reading, others);
  read_batch(reading, others);
  read_precision(reading);
  read_optimizer(reading);
  reading.set("--seed", config.spec.training.seed, "training.seed");
  reading.set("--eval-interval", config.spec.evaluation.every, "evaluation.every");
  reading.set("--save-interval", config.spec.checkpoint.every, "checkpoint.every");
  ignore_the_rest(reading);
  reading.finish();
}

}  // namespace ridgeline::spec
