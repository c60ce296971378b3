// The keys that transformers and those who followed it use for Llama-like models.
#include "core/error.h"
#include "spec/foreign_formats.h"

namespace ridgeline::spec {
namespace {

void read_attention_shape(Reading& reading, const std::string& prefix, const std::string& kind) {
  ModelSpec& model = reading.config().spec.model;
  reading.require(prefix + "num_attention_heads", model.heads, "model.heads", "the model's shape");
  if (!reading.set(prefix + "num_key_value_heads", model.kv_heads, "model.kv_heads", 1)) {
    // The default of the two classes that came with grouped heads; in the others each head has its own.
    if (kind == "mistral" || kind == "mixtral") model.kv_heads = 8;
    reading.assume(assignment("model.kv_heads", model.kv_heads) + " (default of " + kind + ")");
  }
  if (!reading.set(prefix + "head_dim", model.head_width, "model.head_width", 1) && kind.starts_with("qwen3")) {
    model.head_width = 128;
    reading.assume("model.head_width = 128 (default of " + kind + ")");
  }
  const bool attention_bias = reading.boolean(prefix + "attention_bias").value_or(false);
  const bool mlp_bias = reading.boolean(prefix + "mlp_bias").value_or(false);
  model.biases = attention_bias && mlp_bias ? Biases::all
                 : attention_bias           ? Biases::attention
                 : kind == "qwen2"          ? Biases::qkv
                                            : Biases::none;
  if (mlp_bias && !attention_bias) reading.refuse(prefix + "mlp_bias", "false, where the attention has no biases");
  const std::string biases = assignment("model.biases", to_string(model.biases));
  reading.understood(prefix + "attention_bias", biases);
  reading.understood(prefix + "mlp_bias", biases);
  model.qk_norm = kind.starts_with("qwen3");
}

void read_experts(Reading& reading, const std::string& prefix, const std::string& kind) {
  ModelSpec& model = reading.config().spec.model;
  if (kind != "mixtral" && kind != "qwen3_moe") return;
  // Versions of transformers write the number of Qwen 3's under either name.
  if (!reading.set(prefix + "num_local_experts", model.experts, "model.experts", 1) &&
      !reading.set(prefix + "num_experts", model.experts, "model.experts", 1)) {
    model.experts = kind == "mixtral" ? 8 : 128;
    reading.assume(assignment("model.experts", model.experts) + " (default of " + kind + ")");
  }
  if (!reading.set(prefix + "num_experts_per_tok", model.experts_per_token, "model.experts_per_token", 1)) {
    model.experts_per_token = kind == "mixtral" ? 2 : 8;
    reading.assume(assignment("model.experts_per_token", model.experts_per_token) + " (default of " + kind + ")");
  }
  // transformers adds the loss where it is asked for the router's logits.
  if (reading.boolean(prefix + "output_router_logits").value_or(false)) {
    if (!reading.set(prefix + "router_aux_loss_coef", model.router_auxiliary_loss, "model.router_auxiliary_loss")) {
      model.router_auxiliary_loss = 0.001;
      reading.assume("model.router_auxiliary_loss = 0.001 (default of " + kind + ")");
    }
    reading.understood(prefix + "output_router_logits", "the router's auxiliary loss is on");
  }
  if (kind != "qwen3_moe") return;
  model.router_normalize = reading.boolean(prefix + "norm_topk_prob").value_or(false);
  reading.understood(prefix + "norm_topk_prob", assignment("model.router_normalize", model.router_normalize));
  reading.require(prefix + "moe_intermediate_size", model.expert_ffn_hidden, "model.expert_ffn_hidden",
                  "the width of an expert");
  // Layers that differ are not described by a ModelSpec.
  reading.integer(prefix + "decoder_sparse_step", 1, 1);
  reading.ignore(prefix + "decoder_sparse_step", "1: every layer has experts, as in Ridgeline");
  const std::string dense = prefix + "mlp_only_layers";
  if (reading.has(dense) && !reading.is_empty_list(dense)) {
    reading.refuse(dense, "an empty list: layers without experts beside layers with them cannot be described");
  }
  reading.ignore(dense, "empty: every layer has experts, as in Ridgeline");
}

void ignore_what_costs_nothing(Reading& reading, const std::string& prefix) {
  reading.ignore({"router_aux_loss_coef", "output_router_logits"}, "the router's auxiliary loss is off", prefix);
  reading.ignore({"router_jitter_noise", "norm_topk_prob"}, "of the router's noise and scale; no size changes", prefix);
  reading.ignore(
      {"pretraining_tp", "use_cache", "pad_token_id", "bos_token_id", "eos_token_id", "_attn_implementation"},
      "of running the model, not of its shape", prefix);
}

}  // namespace

void read_llama_shape(Reading& reading, const std::string& prefix, const std::string& kind) {
  ModelSpec& model = reading.config().spec.model;
  reading.config().has_model = true;
  model.norm = Norm::rms_norm;
  model.positions = Positions::rotary;
  model.gated_mlp = true;
  reading.require(prefix + "num_hidden_layers", model.layers, "model.layers", "the model's shape");
  reading.require(prefix + "hidden_size", model.hidden, "model.hidden", "the model's shape");
  reading.require(prefix + "vocab_size", model.vocabulary, "model.vocabulary", "the model's shape");
  reading.require(prefix + "intermediate_size", model.ffn_hidden, "model.ffn_hidden", "the width of the MLP");
  read_attention_shape(reading, prefix, kind);
  read_rotary(reading, prefix, kind);
  read_sliding_window(reading, prefix, kind);
  read_experts(reading, prefix, kind);
  if (!reading.set(prefix + "tie_word_embeddings", model.tied, "model.tied")) {
    model.tied = false;
    reading.assume("model.tied = false (default of " + kind + ")");
  }
  reading.set(prefix + "rms_norm_eps", model.norm_epsilon, "model.norm_epsilon");
  reading.set(prefix + "initializer_range", model.init_std, "model.init_std");
  reading.set(prefix + "attention_dropout", model.attention_dropout, "model.attention_dropout");
  if (const auto activation = reading.text(prefix + "hidden_act")) {
    if (*activation != "silu" && *activation != "swish") reading.refuse(prefix + "hidden_act", "\"silu\"");
    reading.understood(prefix + "hidden_act", "model.gated_mlp = true");
  }
  reading.assume(
      fmt::format("norm = \"rms_norm\", positions = \"rotary\", gated_mlp = true, biases = \"{}\"{} (every {})",
                  to_string(model.biases), model.qk_norm ? ", qk_norm = true" : "", kind));
  ignore_what_costs_nothing(reading, prefix);
}

}  // namespace ridgeline::spec
