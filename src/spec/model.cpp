#include "spec/model.h"

#include <cmath>

#include "core/error.h"

namespace ridgeline::spec {
namespace {

void require(bool holds, const char* key, double found, const char* expected) {
  if (!holds) throw InputError("model.{} = {}: expected {}", key, found, expected);
}

void validate_sizes(const ModelSpec& model) {
  // The bounds keep every product of sizes that is computed from a model within 64 bits.
  require(model.layers >= 1 && model.layers <= 100'000, "layers", model.layers, "1 to 100000");
  require(model.hidden >= 1 && model.hidden <= 1'000'000, "hidden", model.hidden, "1 to 1000000");
  require(model.heads >= 1 && model.heads <= model.hidden, "heads", model.heads, "1 to hidden");
  require(model.head_width >= 0 && model.head_width <= 65'536, "head_width", model.head_width, "0 to 65536");
  require(model.ffn_hidden >= 0 && model.ffn_hidden <= 10'000'000, "ffn_hidden", model.ffn_hidden, "0 to 10000000");
  require(model.vocabulary >= 2 && model.vocabulary <= 100'000'000, "vocabulary", model.vocabulary, "2 to 100000000");
  require(model.sequence >= 1 && model.sequence <= 100'000'000, "sequence", model.sequence, "1 to 100000000");
  require(model.sliding_window >= 0 && model.sliding_window <= 100'000'000, "sliding_window", model.sliding_window,
          "0 to 100000000");
  require(model.experts >= 0 && model.experts <= 100'000, "experts", model.experts, "0 to 100000");
  require(model.expert_ffn_hidden >= 0 && model.expert_ffn_hidden <= 10'000'000, "expert_ffn_hidden",
          model.expert_ffn_hidden, "0 to 10000000");
  require(model.shared_ffn_hidden >= 0 && model.shared_ffn_hidden <= 10'000'000, "shared_ffn_hidden",
          model.shared_ffn_hidden, "0 to 10000000");
}

void validate_numbers(const ModelSpec& model) {
  require(model.norm_epsilon >= 0 && model.norm_epsilon <= 1, "norm_epsilon", model.norm_epsilon, "0 to 1");
  require(model.init_std >= 0 && model.init_std <= 10, "init_std", model.init_std, "0 to 10");
  require(model.dropout >= 0 && model.dropout < 1, "dropout", model.dropout, "0 to below 1");
  require(model.attention_dropout >= 0 && model.attention_dropout < 1, "attention_dropout", model.attention_dropout,
          "0 to below 1");
  require(model.router_auxiliary_loss >= 0 && model.router_auxiliary_loss <= 100, "router_auxiliary_loss",
          model.router_auxiliary_loss, "0 to 100");
  require(model.router_z_loss >= 0 && model.router_z_loss <= 100, "router_z_loss", model.router_z_loss, "0 to 100");
  require(model.router_bias_rate >= 0 && model.router_bias_rate <= 1, "router_bias_rate", model.router_bias_rate,
          "0 to 1");
  require(model.capacity_factor >= 0 && model.capacity_factor <= 100'000, "capacity_factor", model.capacity_factor,
          "0 to 100000");
}

void validate_heads(const ModelSpec& model) {
  if (model.head_width == 0 && model.hidden % model.heads != 0) {
    throw InputError("model.heads = {}: model.hidden = {} does not divide by it; change one of the two", model.heads,
                     model.hidden);
  }
  if (model.kv_heads < 0 || model.kv_heads > model.heads || model.heads % model.key_heads() != 0) {
    throw InputError(
        "model.kv_heads = {}: expected 0 or a divisor of model.heads = {}, so that each serves equally many heads",
        model.kv_heads, model.heads);
  }
  if (model.query_width() > 1'000'000) {
    throw InputError("model.head_width = {}: {} heads are {} channels together, expected at most 1000000",
                     model.head_width, model.heads, model.query_width());
  }
  if (model.positions == Positions::rotary && model.head_size() % 2 != 0) {
    throw InputError(
        "model.positions = 'rotary': a head of {} channels cannot be turned in pairs; use an even model.head_width",
        model.head_size());
  }
}

void validate_experts(const ModelSpec& model) {
  if (model.experts > 0 && (model.experts_per_token < 1 || model.experts_per_token > model.experts)) {
    throw InputError("model.experts_per_token = {}: expected 1 to model.experts = {}", model.experts_per_token,
                     model.experts);
  }
  if (model.experts == 0 && model.shared_ffn_hidden > 0) {
    throw InputError(
        "model.shared_ffn_hidden = {}: there are no experts beside the shared ones (model.experts = 0); give "
        "model.experts, or use model.ffn_hidden for a dense MLP",
        model.shared_ffn_hidden);
  }
}

// Sizes alone leave products of three of them.
void validate_width(const ModelSpec& model) {
  const int64_t matrices = model.gated_mlp ? 3 : 2;
  const bool dense = model.experts == 0;
  const int64_t width = dense ? model.ffn() : model.experts * model.expert_ffn() + model.shared_ffn_hidden;
  if (matrices * width <= 20'000'000) return;
  throw InputError("model.{} = {}: {} of a layer: {} channels in all, expected at most {}",
                   dense ? "ffn_hidden" : "experts", dense ? model.ffn_hidden : model.experts,
                   dense ? "the MLP" : "the experts", width, 20'000'000 / matrices);
}

// The bytes of parameters, gradients and optimizer are counted in 64 bits: some twenty a parameter.
void validate_parameters(const ModelSpec& model) {
  constexpr double most = 1e17;
  const double matrices = static_cast<double>(model.gated_mlp ? 3 : 2);
  const double width = model.experts == 0
                           ? static_cast<double>(model.ffn())
                           : static_cast<double>(model.experts * model.expert_ffn() + model.shared_ffn_hidden);
  const double channels = matrices * width + static_cast<double>(2 * (model.query_width() + model.key_width()));
  const double parameters = static_cast<double>(model.layers) * static_cast<double>(model.hidden) * channels;
  if (parameters <= most) return;
  throw InputError(
      "model.layers = {}: {} layers of {} channels have about {:.1e} parameters, expected at most {:.0e}; "
      "lower model.layers, model.hidden or the width of the MLP",
      model.layers, model.layers, model.hidden, parameters, most);
}

}  // namespace

void validate(const ModelSpec& model) {
  validate_sizes(model);
  validate_numbers(model);
  validate_heads(model);
  validate(model.rotary);
  validate_experts(model);
  validate_width(model);
  validate_parameters(model);
}

int64_t ModelSpec::expert_capacity() const {
  if (experts == 0 || capacity_factor <= 0) return 0;
  const double share = static_cast<double>(sequence) * static_cast<double>(experts_per_token) / static_cast<double>(experts);
  return static_cast<int64_t>(std::ceil(capacity_factor * share));
}

void require_trainable(const ModelSpec& model) {
  const auto refuse = [](const char* key, const auto& value, const char* what) {
    throw InputError(
        "model.{} = {}: `ridgeline train` runs models {} so far; planning commands (`plan`, `simulate`) take this model. "
        "Drop the key, or choose another model.preset",
        key, value, what);
  };
  if (model.embedding_norm) refuse("embedding_norm", model.embedding_norm, "without a norm after the embedding");
  if (model.experts > 0 && !model.gated_mlp) refuse("gated_mlp", model.gated_mlp, "whose experts are gated MLPs");
  if (model.experts > 0 && model.biases == Biases::all) refuse("biases", "all", "whose experts have no biases");
}

bool is_trainable(const ModelSpec& model) {
  try {
    require_trainable(model);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

std::string to_string(Norm norm) { return norm == Norm::layer_norm ? "layer_norm" : "rms_norm"; }

std::string to_string(Positions positions) { return positions == Positions::learned ? "learned" : "rotary"; }

std::string to_string(Biases biases) {
  switch (biases) {
    case Biases::all:
      return "all";
    case Biases::attention:
      return "attention";
    case Biases::qkv:
      return "qkv";
    case Biases::none:
      return "none";
  }
  throw InternalError("Biases {}", static_cast<int>(biases));
}

}  // namespace ridgeline::spec
