#include "spec/config.h"

#include "core/error.h"
#include "core/text.h"
#include "spec/hugging_face.h"

namespace ridgeline::spec {
namespace {

// Beyond these the products that sizes are computed from could leave 64 bits.
constexpr double kMostRanks = 1e6;
constexpr double kMostSteps = 1e12;

void bind_rotary(Schema& schema, RotarySpec& rotary) {
  schema.key("model.rotary_base", rotary.base, "frequency of pair i of n in a head: base^(-i / n)",
             Interval{.low = 1, .high = 1e15, .low_open = true});
  schema.choice<RotaryScaling>("model.rotary_scaling", rotary.scaling,
                               {{"none", RotaryScaling::none},
                                {"linear", RotaryScaling::linear},
                                {"llama3", RotaryScaling::llama3},
                                {"yarn", RotaryScaling::yarn}},
                               "how rotation is slowed for sequences beyond those of the first training");
  schema.key("model.rotary_factor", rotary.factor, "by which the sequence is stretched", between(1, 1e6));
  schema.key("model.rotary_original_sequence", rotary.original_sequence,
             "llama3, yarn: tokens that the model was first trained for", between(0, 1e8));
  schema.key("model.rotary_low_frequency", rotary.low_frequency,
             "llama3: turns over the original sequence below which a pair is stretched in full", between(0, 1e9));
  schema.key("model.rotary_high_frequency", rotary.high_frequency, "llama3: turns above which it is left alone",
             between(0, 1e9));
  schema.key("model.rotary_beta_fast", rotary.beta_fast, "yarn: turns above which a pair is left alone",
             between(0, 1e9));
  schema.key("model.rotary_beta_slow", rotary.beta_slow, "yarn: turns below which it is stretched in full",
             between(0, 1e9));
  schema.key("model.rotary_attention_factor", rotary.attention_factor,
             "yarn: of sines and cosines; 0: 0.1 ln(factor) + 1", between(0, 100));
}

// What tells families apart, and experts.
void bind_family(Schema& schema, ModelSpec& model) {
  schema.choice<Norm>("model.norm", model.norm, {{"layer_norm", Norm::layer_norm}, {"rms_norm", Norm::rms_norm}},
                      "layer_norm has weight and bias, rms_norm a weight");
  schema.choice<Positions>("model.positions", model.positions,
                           {{"learned", Positions::learned}, {"rotary", Positions::rotary}},
                           "how the place of a token enters: an embedding, or rotation of queries and keys");
  bind_rotary(schema, model.rotary);
  schema.choice<Biases>(
      "model.biases", model.biases,
      {{"all", Biases::all}, {"attention", Biases::attention}, {"qkv", Biases::qkv}, {"none", Biases::none}},
      "matrices that have a bias");
  schema.key("model.gated_mlp", model.gated_mlp, "SwiGLU, of three matrices, in place of GELU");
  schema.key("model.qk_norm", model.qk_norm, "RMS norm of each head's query and key");
  schema.key("model.sliding_window", model.sliding_window,
             "keys that a query sees, its own the last of them; 0: all before it", between(0, 1e8));
  schema.key("model.experts", model.experts, "experts of each layer; 0: one dense MLP", between(0, 1e5));
  schema.key("model.experts_per_token", model.experts_per_token, "experts that the router picks for a token",
             between(1, 1e5));
  schema.key("model.expert_ffn_hidden", model.expert_ffn_hidden, "width of an expert; 0: that of the MLP",
             between(0, 1e7));
  schema.key("model.shared_ffn_hidden", model.shared_ffn_hidden,
             "added widths of the experts that every token takes; 0: none", between(0, 1e7));
}

void bind_model(Schema& schema, TrainSpec& spec) {
  ModelSpec& model = spec.model;
  schema.table("model",
               "Shape of the model. A preset sets all keys, others override it; the defaults are a small GPT. `train` "
               "takes no experts yet, planning does");
  std::vector<std::string> presets = model_preset_names();
  presets.insert(presets.begin(), "");
  schema.choice("model.preset", spec.model_preset, presets, "named shape to start from; empty: none");
  schema.after("model.preset", [&spec] {
    if (!spec.model_preset.empty()) spec.model = model_preset(spec.model_preset);
  });
  schema.key("model.from", spec.model_from,
             "folder with Hugging Face weights (config.json and safetensors) to start training from, in place of random "
             "ones; its config.json is the preset");
  schema.after("model.from", [&spec] {
    if (spec.model_from.empty()) return;
    if (!spec.model_preset.empty()) {
      throw InputError("model.from = '{}': model.preset = '{}' is given as well; the folder's config.json is the preset",
                       spec.model_from, spec.model_preset);
    }
    spec.model = read_hugging_face_model(spec.model_from);
  });
  schema.key("model.layers", model.layers, "transformer layers", between(1, 1e5));
  schema.key("model.hidden", model.hidden, "width of the residual stream; heads must divide it", between(1, 1e6));
  schema.key("model.heads", model.heads, "attention heads; strategy.tensor must divide them", between(1, 1e6));
  schema.key("model.kv_heads", model.kv_heads, "heads of keys and of values; 0: heads", between(0, 1e6));
  schema.key("model.head_width", model.head_width, "channels of a head; 0: hidden / heads", between(0, 65536));
  schema.key("model.ffn_hidden", model.ffn_hidden, "width of the MLP; 0: 4 * hidden", between(0, 1e7));
  schema.key("model.vocabulary", model.vocabulary, "tokens in the vocabulary, of any size", between(2, 1e8));
  schema.key("model.sequence", model.sequence, "tokens in a sample, and learned positions", between(1, 1e8));
  schema.key("model.tied", model.tied, "the output weight is the token embedding");
  schema.key("model.embedding_norm", model.embedding_norm, "norm of the embeddings' sum, as in BLOOM");
  bind_family(schema, model);
  schema.key("model.norm_epsilon", model.norm_epsilon, "added to the variance in norms", between(0, 1));
  schema.key("model.init_std", model.init_std,
             "standard deviation of initial weights; output projections of attention and MLP get it divided by "
             "sqrt(2 * layers)",
             between(0, 10));
  schema.key("model.dropout", model.dropout, "probability, on embeddings and both residual branches", from_below(0, 1));
  schema.key("model.attention_dropout", model.attention_dropout, "probability, on attention weights", from_below(0, 1));
}

}  // namespace

void bind_strategy(Schema& schema, Strategy& strategy) {
  schema.table("strategy",
               "How a step is laid out over ranks; what tensor * context * pipeline leave of them is data parallel");
  schema.key("strategy.tensor", strategy.tensor, "ranks that share each layer; best kept within a node",
             between(1, kMostRanks));
  schema.key("strategy.sequence_parallel", strategy.sequence_parallel,
             "shard norms, dropout and residuals over the tensor ranks by sequence");
  schema.key("strategy.context", strategy.context, "ranks that share each sequence, for long ones",
             between(1, kMostRanks));
  schema.choice<ContextKind>(
      "strategy.context_kind", strategy.context_kind,
      {{"ring", ContextKind::ring}, {"all_to_all", ContextKind::all_to_all}},
      "how they attend to all of it: keys and values go round (2 * context must divide the sequence), or heads are "
      "shared out (context must divide a tensor rank's heads)");
  schema.key("strategy.pipeline", strategy.pipeline, "pipeline stages", between(1, kMostRanks));
  schema.choice<ScheduleKind>(
      "strategy.schedule", strategy.schedule,
      {{"gpipe", ScheduleKind::gpipe},
       {"1f1b", ScheduleKind::one_f_one_b},
       {"zero_bubble", ScheduleKind::zero_bubble},
       {"zero_bubble_v", ScheduleKind::zero_bubble_v}},
      "order of a stage's work: 1f1b keeps the fewest activations, gpipe runs all forwards first, zero_bubble (ZB-H1) "
      "puts "
      "weight gradients where 1f1b waits, zero_bubble_v (ZB-V) waits least and lays the model out as a V");
  schema.key("strategy.virtual_pipeline", strategy.virtual_pipeline,
             "chunks of the model that a stage holds; more than one: interleaved 1f1b; zero_bubble_v has 2",
             between(1, 1000));
  schema.key("strategy.schedule_file", strategy.schedule_file,
             "file with the order of each stage's work, in place of that of schedule (docs/schedules.md); empty: none");
  schema.key(
      "strategy.stage_layers", strategy.stage_layers,
      "layers of each stage, such as [5, 6, 6, 5]; with chunks of each chunk, in order of the model; empty: balanced, "
      "embedding and head counted as work",
      between(1, 1e5));
  schema.key("strategy.zero_stage", strategy.zero_stage,
             "what is sharded over the data parallel ranks, those of context in each counted: nothing (0), optimizer "
             "state (1), gradients too (2), "
             "parameters too (3)",
             between(0, 3));
  schema.key("strategy.shard_group", strategy.shard_group,
             "neighbours among those that zero_stage shards over, with copies in the other groups (hybrid sharding); "
             "0: all of them",
             between(0, kMostRanks));
  schema.key("strategy.offload_optimizer", strategy.offload_optimizer,
             "keep masters and moments in host memory and update there; for when device memory is short");
  schema.key("strategy.micro_batch", strategy.micro_batch, "samples of one micro-batch on one data parallel replica",
             between(1, 1e6));
  schema.key("strategy.global_batch", strategy.global_batch, "samples of one optimizer step over all replicas",
             between(1, 1e9));
  schema.choice<Recompute>("strategy.recompute", strategy.recompute,
                           {{"none", Recompute::none}, {"selective", Recompute::selective}, {"full", Recompute::full}},
                           "what backward computes again instead of keeping: nothing, the outputs of norms and GELU "
                           "(selective), or whole layers (full)");
  schema.key("strategy.bucket_mib", strategy.bucket_mib, "size of a gradient bucket, MiB of fp32",
             Interval{.low = 0, .high = 1e6, .low_open = true});
}

namespace {

void bind_precision(Schema& schema, PrecisionSpec& precision) {
  schema.table("precision", "Number formats; parameters' masters, main gradients and optimizer state are fp32 always");
  schema.choice<Precision>("precision.compute", precision.compute,
                           {{"fp32", Precision::fp32}, {"bf16", Precision::bf16}, {"fp16", Precision::fp16}},
                           "of weights and activations");
  schema.key("precision.initial_loss_scale", precision.initial_loss_scale, "fp16 only",
             Interval{.low = 0, .high = 1e30, .low_open = true});
  schema.key("precision.loss_scale_window", precision.loss_scale_window,
             "fp16 only: good steps before the scale doubles", between(1, kMostSteps));
}

void bind_optimizer(Schema& schema, OptimizerSpec& optimizer) {
  schema.table("optimizer", "AdamW and its learning rate");
  schema.key("optimizer.lr", optimizer.lr, "peak learning rate", at_least(0));
  schema.key("optimizer.min_lr", optimizer.min_lr, "learning rate at the end of the decay", at_least(0));
  schema.key("optimizer.warmup_steps", optimizer.warmup_steps, "steps of linear warm-up from 0",
             between(0, kMostSteps));
  schema.choice<DecayKind>("optimizer.decay", optimizer.decay,
                           {{"constant", DecayKind::constant},
                            {"cosine", DecayKind::cosine},
                            {"linear", DecayKind::linear},
                            {"warmup_stable_decay", DecayKind::warmup_stable_decay}},
                           "shape of the way from lr to min_lr");
  schema.key("optimizer.decay_steps", optimizer.decay_steps,
             "step at which min_lr is reached, warm-up included; 0: training.steps", between(0, kMostSteps));
  schema.key("optimizer.stable_fraction", optimizer.stable_fraction,
             "warmup_stable_decay: share of decay_steps before the decay starts", between(0, 1));
  schema.key("optimizer.beta1", optimizer.beta1, "decay of the first moment", from_below(0, 1));
  schema.key("optimizer.beta2", optimizer.beta2, "decay of the second moment", from_below(0, 1));
  schema.key("optimizer.epsilon", optimizer.epsilon, "added to the root of the second moment",
             Interval{.low = 0, .high = 1, .low_open = true});
  schema.key("optimizer.weight_decay", optimizer.weight_decay, "decoupled; not on norms and biases", at_least(0));
  schema.key("optimizer.clip", optimizer.clip, "largest global gradient norm; 0: no clipping", at_least(0));
}

void bind_data(Schema& schema, DataSpec& data) {
  schema.table("data", "Tokenised corpora, as `ridgeline data tokenize` makes them");
  schema.key("data.path", data.path, "prefix of PATH.bin and PATH.idx, relative to the working directory");
  schema.key("data.validation_path", data.validation_path,
             "prefix of a second pair; empty: the end of path is held out");
  schema.key("data.validation_fraction", data.validation_fraction,
             "share of path's tokens held out at its end, where validation_path is empty", from_below(0, 1));
  schema.key("data.separate_documents", data.separate_documents,
             "tokens see their own document alone, and positions begin anew with each");
}

void bind_evaluation_and_checkpoint(Schema& schema, TrainSpec& spec) {
  schema.table("evaluation", "Loss on held-out samples during training");
  schema.key("evaluation.every", spec.evaluation.every, "steps between evaluations; 0: never", between(0, kMostSteps));
  schema.key("evaluation.samples", spec.evaluation.samples, "held-out samples of one evaluation", between(1, 1e12));
  schema.table("checkpoint", "Saved state, in the run folder's checkpoints/");
  schema.key("checkpoint.every", spec.checkpoint.every, "steps between checkpoints; 0: only at the end",
             between(0, kMostSteps));
  schema.key("checkpoint.keep", spec.checkpoint.keep, "newest complete checkpoints kept; 0: all", between(0, 1e9));
  schema.key("checkpoint.at_end", spec.checkpoint.at_end, "save after the last step");
  schema.key("checkpoint.resume", spec.checkpoint.resume, "continue from the run folder's newest complete checkpoint");
}

void bind_training(Schema& schema, TrainingSpec& training) {
  schema.table("training", "The run");
  schema.key("training.run", training.run, "run folder: metrics.jsonl, TensorBoard events, checkpoints/");
  schema.key("training.steps", training.steps, "optimizer steps in all", between(0, kMostSteps));
  schema.key("training.seed", training.seed, "of initial weights, dropout and data order", at_least(0));
  schema.choice("training.device", training.device, {"auto", "cpu", "cuda", "xpu"},
                "auto: an accelerator where there is one");
  schema.key("training.threads", training.threads,
             "CPU threads of a rank; 0: the machine's cores divided among its ranks", between(0, 4096));
  schema.key("training.log_every", training.log_every, "steps between progress lines", between(1, kMostSteps));
  schema.key("training.check_replicas", training.check_replicas,
             "steps between comparisons of all copies of parameters, by hash; 0: never", between(0, kMostSteps));
  schema.key("training.profile_steps", training.profile_steps,
             "FIRST:LAST, steps whose trace of all ranks is written to the run folder, for Perfetto; empty: none");
  schema.key("training.communication_timeout", training.communication_timeout,
             "seconds before a collective that does not end is an error",
             Interval{.low = 0, .high = 1e9, .low_open = true});
}

}  // namespace

void bind(Schema& schema, TrainSpec& spec) {
  bind_model(schema, spec);
  bind_strategy(schema, spec.strategy);
  bind_precision(schema, spec.precision);
  bind_optimizer(schema, spec.optimizer);
  bind_data(schema, spec.data);
  bind_evaluation_and_checkpoint(schema, spec);
  bind_training(schema, spec.training);
}

TrainConfig load_train_spec(const std::string& path, const std::vector<std::string>& sets) {
  TrainConfig config;
  Schema schema;
  bind(schema, config.spec);
  if (!path.empty()) schema.read_file(path);
  for (const std::string& assignment : sets) schema.set(assignment);
  schema.apply();
  config.sources = schema.sources();
  config.overrides = schema.overrides();
  config.sources.located([&] { validate(config.spec); });
  return config;
}

std::string to_toml(const TrainSpec& spec, bool with_docs) {
  TrainSpec copy;
  Schema schema;
  bind(schema, copy);
  copy = spec;
  return schema.to_toml(with_docs);
}

std::string to_saved_toml(const TrainSpec& spec) {
  TrainSpec saved = spec;
  saved.model_from.clear();
  return to_toml(saved);
}

}  // namespace ridgeline::spec
