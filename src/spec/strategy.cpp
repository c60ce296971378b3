#include "spec/strategy.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "core/text.h"

namespace ridgeline::spec {
namespace {

// "1, 2, 4": the divisors of `number`, the largest sixteen where there are more.
std::string divisor_list(int64_t number) {
  std::vector<std::string> words;
  for (const int64_t divisor : divisors(number)) words.push_back(fmt::format("{}", divisor));
  if (words.size() > 16) words.erase(words.begin(), words.end() - 16);
  return join(words);
}

void check_range(const char* key, int64_t value, int64_t low, int64_t high) {
  if (value < low || value > high) {
    throw InputError("strategy.{} = {}: expected {} to {}", key, value, low, high);
  }
}

void check_ranges(const Strategy& strategy) {
  // The same bounds as in config.cpp: here for strategies that were built by a program.
  check_range("tensor", strategy.tensor, 1, 1'000'000);
  check_range("pipeline", strategy.pipeline, 1, 1'000'000);
  check_range("context", strategy.context, 1, 1'000'000);
  check_range("zero_stage", strategy.zero_stage, 0, 3);
  check_range("shard_group", strategy.shard_group, 0, 1'000'000);
  check_range("expert", strategy.expert, 1, 1'000'000);
  check_range("expert_tensor", strategy.expert_tensor, 0, 1'000'000);
  check_range("virtual_pipeline", strategy.virtual_pipeline, 1, 1'000);
  check_range("micro_batch", strategy.micro_batch, 1, 1'000'000);
  check_range("global_batch", strategy.global_batch, 1, 1'000'000'000);
  if (!(strategy.bucket_mib > 0)) throw InputError("strategy.bucket_mib = {}: expected > 0", strategy.bucket_mib);
}

void check_tensor(const Strategy& strategy, const ModelSpec& model) {
  const int64_t tensor = strategy.tensor;
  if (model.heads % tensor != 0) {
    throw InputError("strategy.tensor = {}: {} heads do not divide by {}; use one of {}", tensor, model.heads, tensor,
                     divisor_list(model.heads));
  }
  if (model.key_heads() % tensor != 0) {
    throw InputError(
        "strategy.tensor = {}: {} key and value heads (model.kv_heads) do not divide by {}; use one of {}", tensor,
        model.key_heads(), tensor, divisor_list(std::gcd(model.heads, model.key_heads())));
  }
  if (model.vocabulary < tensor) {
    throw InputError("strategy.tensor = {}: a vocabulary of {} leaves ranks without a token; use at most {}", tensor,
                     model.vocabulary, model.vocabulary);
  }
}

// How many parts the context axis cuts a sequence in.
int64_t sequence_parts(const Strategy& strategy) {
  if (strategy.context == 1) return 1;
  return strategy.context_kind == ContextKind::ring ? 2 * strategy.context : strategy.context;
}

// After check_tensor: heads divide by the tensor axis.
void check_context(const Strategy& strategy, const ModelSpec& model) {
  const int64_t context = strategy.context, tensor = strategy.tensor;
  if (context == 1) return;
  if (model.sequence % sequence_parts(strategy) != 0) {
    throw InputError(
        "strategy.context = {}: a sequence of {} cannot be cut in {} parts{}; use a context of {}, or a model.sequence "
        "that divides by {}",
        context, model.sequence, sequence_parts(strategy),
        strategy.context_kind == ContextKind::ring ? ", two for each rank of the ring" : "",
        divisor_list(strategy.context_kind != ContextKind::ring ? model.sequence
                     : model.sequence % 2 == 0                  ? model.sequence / 2
                                                                : 1),
        sequence_parts(strategy));
  }
  if (strategy.context_kind != ContextKind::all_to_all) return;
  const int64_t heads = model.heads / tensor, key_heads = model.key_heads() / tensor;
  if (heads % context != 0) {
    throw InputError(
        "strategy.context = {}: all_to_all shares out heads, and the {} of a tensor rank do not divide by {}; use one "
        "of {}, or context_kind = \"ring\"",
        context, heads, context, divisor_list(heads));
  }
  if (key_heads % context != 0 && context % key_heads != 0) {
    throw InputError(
        "strategy.context = {}: all_to_all shares out heads, and of the {} key and value heads of a tensor rank (model."
        "kv_heads) no rank would get whole ones; use one of {}, or context_kind = \"ring\"",
        context, key_heads, divisor_list(key_heads));
  }
}

void check_sequence_parallel(const Strategy& strategy, const ModelSpec& model) {
  if (!strategy.sequence_parallel) return;
  const int64_t held = strategy.held_sequence(model), tensor = strategy.tensor;
  if (held % tensor == 0) return;
  throw InputError(
      "strategy.sequence_parallel = true: a sequence of {}{} does not divide by strategy.tensor = {}; use a tensor of "
      "{}, or turn sequence_parallel off",
      held, strategy.context > 1 ? fmt::format(" (what strategy.context = {} leaves a rank)", strategy.context) : "",
      tensor, divisor_list(std::gcd(held, model.heads)));
}

void check_stages(const Strategy& strategy, const ModelSpec& model) {
  const int64_t stages = strategy.global_stages();
  if (strategy.virtual_pipeline > 1 && stages > model.layers) {
    throw InputError(
        "strategy.virtual_pipeline = {}: {} stages of {} chunks are more than the model's {} layers; use at most {}",
        strategy.virtual_pipeline, strategy.pipeline, strategy.virtual_pipeline, model.layers,
        std::max<int64_t>(1, model.layers / strategy.pipeline));
  }
  if (strategy.pipeline > model.layers) {
    throw InputError("strategy.pipeline = {}: more stages than the model's {} layers; use at most {}",
                     strategy.pipeline, model.layers, model.layers);
  }
  const std::vector<int64_t>& layers = strategy.stage_layers;
  if (layers.empty()) return;
  if (static_cast<int64_t>(layers.size()) != stages) {
    throw InputError("strategy.stage_layers = [{}]: {} entries for strategy.pipeline = {}{}; give one for each {}",
                     fmt::join(layers, ", "), layers.size(), strategy.pipeline,
                     stages == strategy.pipeline ? "" : fmt::format(" of {} chunks each", strategy.virtual_pipeline),
                     stages == strategy.pipeline ? "stage" : "chunk, in order of the model");
  }
  int64_t sum = 0;
  for (const int64_t count : layers) {
    if (count < 1 || count > model.layers) {
      throw InputError("strategy.stage_layers = [{}]: expected entries of 1 to {}", fmt::join(layers, ", "),
                       model.layers);
    }
    sum += count;
  }
  if (sum != model.layers) {
    throw InputError("strategy.stage_layers = [{}]: they add up to {}, the model has {} layers",
                     fmt::join(layers, ", "), sum, model.layers);
  }
}

// Interleaved 1F1B, whose micro-batches go through in groups of as many as there are stages, or two chunks of a V.
void check_chunks(const Strategy& strategy) {
  const int64_t chunks = strategy.virtual_pipeline;
  if (strategy.is_vee() && strategy.pipeline == 1) {
    throw InputError(
        "strategy.schedule = \"zero_bubble_v\": chunks on the way down the stages and back need at least 2 stages; "
        "raise "
        "strategy.pipeline or use \"1f1b\"");
  }
  if (chunks == 1) return;
  const auto refuse = [chunks](const std::string& why) {
    throw InputError("strategy.virtual_pipeline = {}: {}; or set it to 1", chunks, why);
  };
  if (strategy.is_vee()) {
    if (chunks != 2) refuse("strategy.schedule = \"zero_bubble_v\" has 2 chunks a stage; set it to 2");
    return;
  }
  if (strategy.pipeline == 1) refuse("interleaving needs at least 2 stages; raise strategy.pipeline");
  if (strategy.schedule != ScheduleKind::one_f_one_b) refuse("interleaving is a form of strategy.schedule = \"1f1b\"");
  if (strategy.schedule_file.empty() && strategy.micro_batches() % strategy.pipeline != 0) {
    refuse(
        fmt::format("the {} micro-batches of a replica do not divide by strategy.pipeline = {}; change "
                    "strategy.global_batch or strategy.micro_batch",
                    strategy.micro_batches(), strategy.pipeline));
  }
}

// Channels of the widest activation of a layer.
int64_t widest(const ModelSpec& model) {
  const int64_t attention = std::max(3 * model.hidden, model.query_width() + 2 * model.key_width());
  const int64_t mlp =
      model.experts == 0
          ? model.ffn()
          : std::max({model.experts, model.experts_per_token * model.expert_ffn(), model.shared_ffn_hidden});
  return std::max(attention, mlp);
}

// The bytes of activations that a stage holds are counted in 64 bits: some dozen tensors a layer.
void check_activations(const Strategy& strategy, const ModelSpec& model) {
  constexpr double most = 5e16;
  const double held = strategy.schedule == ScheduleKind::gpipe ? static_cast<double>(strategy.micro_batches()) : 1.0;
  const double elements = static_cast<double>(strategy.micro_batch) * static_cast<double>(model.sequence) *
                          static_cast<double>(widest(model)) * static_cast<double>(model.layers) * held;
  if (elements <= most) return;
  throw InputError(
      "strategy.micro_batch = {}: {} samples of {} tokens are {:.1e} elements in {} layers of up to {} channels{}, "
      "expected "
      "at most {:.0e}; lower strategy.micro_batch or model.sequence",
      strategy.micro_batch, strategy.micro_batch, model.sequence, elements, model.layers, widest(model),
      held > 1 ? fmt::format(" and the {} micro-batches that gpipe keeps", strategy.micro_batches()) : "", most);
}

void check_shard_group(const Strategy& strategy) {
  const int64_t group = strategy.shard_group;
  if (group == 0) return;
  if (strategy.zero_stage == 0) {
    throw InputError(
        "strategy.shard_group = {}: nothing is sharded with strategy.zero_stage = 0; use a zero_stage of 1 to 3, "
        "or leave shard_group out",
        group);
  }
  if (strategy.copies() % group != 0) {
    throw InputError(
        "strategy.shard_group = {}: does not divide the {} ranks of the data axis{}; use one of {}, or 0 for all",
        group, strategy.copies(), strategy.context > 1 ? fmt::format(" with {} of context each", strategy.context) : "",
        divisor_list(strategy.copies()));
  }
}

// Experts lie on ranks of a stage that follow one another: `width` of them for each rank of the data axis.
void check_experts(const Strategy& strategy, const ModelSpec& model) {
  if (strategy.expert_tensor > 1 && strategy.expert_tensor != strategy.tensor) {
    throw InputError("strategy.expert_tensor = {}: expected 1 (experts are whole) or strategy.tensor = {}",
                     strategy.expert_tensor, strategy.tensor);
  }
  if (model.experts == 0) {
    if (strategy.expert == 1) return;
    throw InputError("strategy.expert = {}: the model has no experts (model.experts = 0); set it to 1", strategy.expert);
  }
  if (model.experts % strategy.expert != 0) {
    throw InputError("strategy.expert = {}: {} experts (model.experts) do not divide by it; use one of {}",
                     strategy.expert, model.experts, divisor_list(model.experts));
  }
  const int64_t width = strategy.keeps_experts_whole() ? strategy.tensor : 1;
  if (strategy.keeps_experts_whole() && strategy.held_rows(model) % strategy.tensor != 0) {
    throw InputError(
        "strategy.expert_tensor = 1: the {} tokens of a micro-batch do not divide by strategy.tensor = {}, each of whose "
        "ranks routes its part of them; change strategy.micro_batch or set expert_tensor to {}",
        strategy.held_rows(model), strategy.tensor, strategy.tensor);
  }
  if (strategy.context > 1 && model.capacity_factor > 0) {
    throw InputError(
        "model.capacity_factor = {}: strategy.context = {} cuts samples, and an expert takes the first tokens of each; set "
        "capacity_factor to 0 or context to 1",
        model.capacity_factor, strategy.context);
  }
  if (strategy.shards() * width % strategy.expert == 0) return;
  throw InputError(
      "strategy.expert = {}: does not divide the {} ranks that experts can lie on ({} {}); use one of {}, or more ranks",
      strategy.expert, strategy.shards() * width, strategy.shard_group > 0 ? "shard_group" : "data",
      width > 1 ? "x tensor ranks" : "ranks", divisor_list(std::gcd(strategy.shards() * width, model.experts)));
}

}  // namespace

void derive_data(Strategy& strategy, const ModelSpec& model, int64_t ranks) {
  check_ranges(strategy);
  if (strategy.is_vee() && strategy.virtual_pipeline == 1) strategy.virtual_pipeline = 2;
  check_tensor(strategy, model);
  check_context(strategy, model);
  check_sequence_parallel(strategy, model);
  check_stages(strategy, model);
  const int64_t one_replica = strategy.tensor * strategy.context;  // each at most 1e6
  const int64_t model_parallel = one_replica <= 1'000'000 ? one_replica * strategy.pipeline : ranks + 1;
  if (ranks < 1 || ranks % model_parallel != 0) {
    const bool has_context = strategy.context > 1;
    const auto [key, value] = strategy.tensor > 1 ? std::pair("tensor", strategy.tensor)
                              : has_context       ? std::pair("context", strategy.context)
                                                  : std::pair("pipeline", strategy.pipeline);
    throw InputError(
        "strategy.{} = {}: {} rank{} cannot be cut in groups of tensor *{} pipeline = {} *{} {} = {}; start a multiple "
        "of {} ranks, or lower tensor{} or pipeline",
        key, value, ranks, ranks == 1 ? "" : "s", has_context ? " context *" : "", strategy.tensor,
        has_context ? fmt::format(" {} *", strategy.context) : "", strategy.pipeline, model_parallel, model_parallel,
        has_context ? ", context" : "");
  }
  const int64_t data = ranks / model_parallel;
  const int64_t samples = strategy.micro_batch * data;
  if (strategy.global_batch % samples != 0) {
    const int64_t below = strategy.global_batch / samples * samples;
    throw InputError(
        "strategy.global_batch = {}: does not divide by micro_batch * data = {} * {} = {}; use {}{} or change "
        "strategy.micro_batch",
        strategy.global_batch, strategy.micro_batch, data, samples, below > 0 ? fmt::format("{} or ", below) : "",
        below + samples);
  }
  strategy.data = data;
  check_activations(strategy, model);
  check_shard_group(strategy);
  check_experts(strategy, model);
  check_chunks(strategy);
}

bool is_legal(const Strategy& strategy, const ModelSpec& model) {
  try {
    Strategy again = strategy;
    derive_data(again, model, strategy.ranks());
    return true;
  } catch (const InputError&) {
    return false;
  }
}

std::vector<Range> Strategy::held_places(int64_t sequence, int64_t index) const {
  const int64_t parts = sequence_parts(*this), chunk = sequence / parts;
  const auto part = [chunk](int64_t number) { return Range{number * chunk, (number + 1) * chunk}; };
  if (parts <= context) return {part(index)};
  return {part(index), part(parts - 1 - index)};
}

std::vector<int64_t> divisors(int64_t number) {
  std::vector<int64_t> small, large;
  for (int64_t divisor = 1; divisor <= number / divisor; ++divisor) {
    if (number % divisor != 0) continue;
    small.push_back(divisor);
    if (divisor != number / divisor) large.push_back(number / divisor);
  }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

std::string to_string(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::gpipe:
      return "gpipe";
    case ScheduleKind::one_f_one_b:
      return "1f1b";
    case ScheduleKind::zero_bubble:
      return "zero_bubble";
    case ScheduleKind::zero_bubble_v:
      return "zero_bubble_v";
  }
  throw InternalError("ScheduleKind {}", static_cast<int>(kind));
}

std::string to_string(Recompute recompute) {
  switch (recompute) {
    case Recompute::none:
      return "none";
    case Recompute::selective:
      return "selective";
    case Recompute::full:
      return "full";
  }
  throw InternalError("Recompute {}", static_cast<int>(recompute));
}

std::string to_string(ContextKind kind) {
  switch (kind) {
    case ContextKind::ring:
      return "ring";
    case ContextKind::all_to_all:
      return "all_to_all";
  }
  throw InternalError("ContextKind {}", static_cast<int>(kind));
}

}  // namespace ridgeline::spec
