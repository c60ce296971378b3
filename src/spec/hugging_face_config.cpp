// config.json, written and read. It is written as transformers 4 writes it, which transformers 5 and other programs read
// as well.
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/text.h"
#include "spec/foreign_config.h"
#include "spec/hugging_face.h"

namespace ridgeline::spec {
namespace {

using json = nlohmann::ordered_json;

json gpt2_config(const ModelSpec& model) {
  json config = {{"architectures", {"GPT2LMHeadModel"}},
                 {"model_type", "gpt2"},
                 {"n_layer", model.layers},
                 {"n_embd", model.hidden},
                 {"n_head", model.heads},
                 {"vocab_size", model.vocabulary},
                 {"n_positions", model.sequence},
                 {"n_inner", model.ffn()},
                 {"activation_function", "gelu_new"},
                 {"layer_norm_epsilon", model.norm_epsilon},
                 {"resid_pdrop", model.dropout},
                 {"embd_pdrop", model.dropout},
                 {"attn_pdrop", model.attention_dropout}};
  return config;
}

json rotary_scaling(const RotarySpec& rotary) {
  json scaling = {{"rope_type", to_string(rotary.scaling)}, {"factor", rotary.factor}};
  if (rotary.scaling == RotaryScaling::linear) return scaling;
  scaling["original_max_position_embeddings"] = rotary.original_sequence;
  if (rotary.scaling == RotaryScaling::llama3) {
    scaling["low_freq_factor"] = rotary.low_frequency;
    scaling["high_freq_factor"] = rotary.high_frequency;
  } else {
    scaling["beta_fast"] = rotary.beta_fast;
    scaling["beta_slow"] = rotary.beta_slow;
    scaling["attention_factor"] = rotary_attention_factor(rotary);
  }
  return scaling;
}

const char* architecture(const std::string& type) {
  if (type == "llama") return "LlamaForCausalLM";
  if (type == "mistral") return "MistralForCausalLM";
  if (type == "qwen2") return "Qwen2ForCausalLM";
  if (type == "qwen3") return "Qwen3ForCausalLM";
  if (type == "mixtral") return "MixtralForCausalLM";
  if (type == "qwen3_moe") return "Qwen3MoeForCausalLM";
  throw InternalError("no class of the type {}", type);
}

void add_experts(json& config, const ModelSpec& model, const std::string& type) {
  config["num_experts_per_tok"] = model.experts_per_token;
  config["router_aux_loss_coef"] = model.router_auxiliary_loss;
  config["output_router_logits"] = model.router_auxiliary_loss > 0;  // which turns the loss on
  if (type == "mixtral") {
    config["num_local_experts"] = model.experts;
    config["intermediate_size"] = model.expert_ffn();
    return;
  }
  config["num_experts"] = model.experts;
  config["moe_intermediate_size"] = model.expert_ffn();
  config["norm_topk_prob"] = model.router_normalize;
  config["decoder_sparse_step"] = 1;
  config["mlp_only_layers"] = json::array();
}

json llama_config(const ModelSpec& model, const std::string& type) {
  json config = {{"architectures", {architecture(type)}},
                 {"model_type", type},
                 {"num_hidden_layers", model.layers},
                 {"hidden_size", model.hidden},
                 {"num_attention_heads", model.heads},
                 {"num_key_value_heads", model.key_heads()},
                 {"intermediate_size", model.ffn()},
                 {"vocab_size", model.vocabulary},
                 {"max_position_embeddings", model.sequence},
                 {"hidden_act", "silu"},
                 {"rms_norm_eps", model.norm_epsilon},
                 {"attention_dropout", model.attention_dropout},
                 {"rope_theta", model.rotary.base},
                 {"rope_scaling", nullptr}};
  if (type != "qwen2") config["head_dim"] = model.head_size();
  if (model.rotary.scaling != RotaryScaling::none) config["rope_scaling"] = rotary_scaling(model.rotary);
  if (type == "llama" || type.starts_with("qwen3")) config["attention_bias"] = model.biases != Biases::none;
  if (type == "llama") config["mlp_bias"] = model.biases == Biases::all;
  const bool has_window = model.sliding_window > 0;
  if (type == "mistral" || type == "mixtral") config["sliding_window"] = has_window ? json(model.sliding_window) : json();
  if (type.starts_with("qwen")) {
    config["use_sliding_window"] = has_window;
    if (has_window) config["sliding_window"] = model.sliding_window;
    config["max_window_layers"] = has_window ? 0 : model.layers;
  }
  if (model.experts > 0) add_experts(config, model, type);
  return config;
}

const char* torch_name(Precision stored) {
  if (stored == Precision::bf16) return "bfloat16";
  return stored == Precision::fp16 ? "float16" : "float32";
}

}  // namespace

std::string hugging_face_config(const ModelSpec& model, Precision stored) {
  const std::string type = hugging_face_type(model);
  json config = type == "gpt2" ? gpt2_config(model) : llama_config(model, type);
  config["tie_word_embeddings"] = model.tied;
  config["initializer_range"] = model.init_std;
  config["torch_dtype"] = torch_name(stored);
  return config.dump(2) + "\n";
}

ModelSpec read_hugging_face_model(const std::string& folder) {
  const ForeignConfig config = read_foreign_config(folder + "/config.json", "huggingface");
  for (const ForeignSetting& setting : config.beyond) {
    throw InputError("{}: {} = {}: {}; no key of Ridgeline says it, and the weights would give other values",
                     setting.where, setting.name, setting.value, setting.meaning);
  }
  for (const std::string& missing : config.missing) throw InputError("{}/config.json: {}", folder, missing);
  return config.spec.model;
}

}  // namespace ridgeline::spec
