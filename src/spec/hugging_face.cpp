#include "spec/hugging_face.h"

#include <array>
#include <span>

#include "core/error.h"
#include "core/text.h"
#include "spec/parameters.h"

namespace ridgeline::spec {
namespace {

// A module of ours and theirs; both have a weight and may have a bias. Of a layer's module the name is without its
// "layers.N." and their prefix.
struct ModuleName {
  const char* ours;
  std::array<const char*, 3> theirs;  // more than one, or a * for a number: one for each index of our first dim
  bool transposed = false;
};

struct Family {
  const char* type;  // model_type
  bool (*says)(const ModelSpec& model);
  const char* layers;  // before the layer's number
  std::span<const ModuleName> modules;
  std::span<const ModuleName> experts = {};  // beside them
};

// A router of theirs has no bias, and no experts are shared. Capacity and losses matter in training alone.
bool has_plain_experts(const ModelSpec& model) {
  return model.experts > 0 && model.shared_ffn_hidden == 0 && model.router_bias_rate <= 0;
}

bool is_gpt2(const ModelSpec& model) {
  return model.norm == Norm::layer_norm && model.positions == Positions::learned && model.biases == Biases::all &&
         model.fused_qkv() && !model.gated_mlp && !model.qk_norm && model.sliding_window == 0 && model.experts == 0;
}

bool is_llama_like(const ModelSpec& model) {
  return model.norm == Norm::rms_norm && model.positions == Positions::rotary && model.gated_mlp;
}

bool is_llama(const ModelSpec& model) {
  return is_llama_like(model) && model.experts == 0 && !model.qk_norm && model.biases != Biases::qkv && model.sliding_window == 0;
}

bool is_mistral(const ModelSpec& model) {
  return is_llama_like(model) && model.experts == 0 && !model.qk_norm && model.biases == Biases::none;
}

bool is_mixtral(const ModelSpec& model) {
  return is_llama_like(model) && has_plain_experts(model) && model.router_normalize && !model.qk_norm &&
         model.biases == Biases::none;
}

// It has no key for the width of heads.
bool is_qwen2(const ModelSpec& model) {
  return is_llama_like(model) && model.experts == 0 && !model.qk_norm && model.biases == Biases::qkv && model.query_width() == model.hidden;
}

bool is_qwen3_like(const ModelSpec& model) {
  return is_llama_like(model) && model.qk_norm && (model.biases == Biases::none || model.biases == Biases::attention);
}

bool is_qwen3(const ModelSpec& model) { return is_qwen3_like(model) && model.experts == 0; }

bool is_qwen3_moe(const ModelSpec& model) { return is_qwen3_like(model) && has_plain_experts(model); }

constexpr ModuleName kGpt2[] = {
    {"embedding.token", {"transformer.wte"}},
    {"embedding.position", {"transformer.wpe"}},
    {"final_norm", {"transformer.ln_f"}},
    {"head", {"lm_head"}},
    {"attention_norm", {"ln_1"}},
    {"attention.qkv", {"attn.c_attn"}, true},
    {"attention.output", {"attn.c_proj"}, true},
    {"mlp_norm", {"ln_2"}},
    {"mlp.up", {"mlp.c_fc"}, true},
    {"mlp.down", {"mlp.c_proj"}, true},
};

constexpr ModuleName kLlama[] = {
    {"embedding.token", {"model.embed_tokens"}},
    {"final_norm", {"model.norm"}},
    {"head", {"lm_head"}},
    {"attention_norm", {"input_layernorm"}},
    {"attention.qkv", {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}},
    {"attention.query", {"self_attn.q_proj"}},
    {"attention.key", {"self_attn.k_proj"}},
    {"attention.value", {"self_attn.v_proj"}},
    {"attention.query_norm", {"self_attn.q_norm"}},
    {"attention.key_norm", {"self_attn.k_norm"}},
    {"attention.output", {"self_attn.o_proj"}},
    {"mlp_norm", {"post_attention_layernorm"}},
    {"mlp.gate", {"mlp.gate_proj"}},
    {"mlp.up", {"mlp.up_proj"}},
    {"mlp.down", {"mlp.down_proj"}},
};

// Where their names differ from those of Llama.
constexpr ModuleName kMixtral[] = {
    {"mlp.router", {"block_sparse_moe.gate"}},
    {"mlp.experts.gate", {"block_sparse_moe.experts.*.w1"}},
    {"mlp.experts.up", {"block_sparse_moe.experts.*.w3"}},
    {"mlp.experts.down", {"block_sparse_moe.experts.*.w2"}},
};

constexpr ModuleName kQwen3Moe[] = {
    {"mlp.router", {"mlp.gate"}},
    {"mlp.experts.gate", {"mlp.experts.*.gate_proj"}},
    {"mlp.experts.up", {"mlp.experts.*.up_proj"}},
    {"mlp.experts.down", {"mlp.experts.*.down_proj"}},
};

constexpr Family kFamilies[] = {
    {"gpt2", is_gpt2, "transformer.h.", kGpt2},  {"llama", is_llama, "model.layers.", kLlama},
    {"mistral", is_mistral, "model.layers.", kLlama}, {"qwen2", is_qwen2, "model.layers.", kLlama},
    {"qwen3", is_qwen3, "model.layers.", kLlama},  {"mixtral", is_mixtral, "model.layers.", kLlama, kMixtral},
    {"qwen3_moe", is_qwen3_moe, "model.layers.", kLlama, kQwen3Moe},
};

const Family& family_of(const ModelSpec& model) {
  std::vector<std::string> types;
  for (const Family& family : kFamilies) {
    if (family.says(model)) return family;
    types.push_back(family.type);
  }
  throw InputError("the model has a combination of keys (norm, positions, biases, gated_mlp, qk_norm, sliding_window, "
                   "experts, router_normalize, shared_ffn_hidden, router_bias_rate) that no family of Hugging Face transformers known here ({}) has", join(types));
}

// "layers.3.mlp.up.weight" taken apart.
struct ParameterName {
  std::string layer;   // "3", empty outside layers
  std::string module;  // "mlp.up"
  std::string kind;    // "weight" or "bias"
};

ParameterName taken_apart(const std::string& name) {
  ParameterName parts;
  size_t begin = 0;
  if (name.starts_with("layers.")) {
    const size_t layer = std::string("layers.").size(), end = name.find('.', layer);
    parts.layer = name.substr(layer, end - layer);
    begin = end + 1;
  }
  const size_t dot = name.rfind('.');
  parts.module = name.substr(begin, dot - begin);
  parts.kind = name.substr(dot + 1);
  return parts;
}

const ModuleName& module_of(const Family& family, const std::string& module) {
  for (const std::span<const ModuleName> names : {family.modules, family.experts}) {
    for (const ModuleName& candidate : names) {
      if (module == candidate.ours) return candidate;
    }
  }
  throw InternalError("{} has no name for {}", family.type, module);
}

// Matrices have the columns of our last dim, and as rows our leading dims taken together; all else is a vector.
std::vector<int64_t> their_shape(const Box& box, bool is_matrix, bool transposed) {
  if (!is_matrix) return {box.elements()};
  const int64_t columns = box.extent.back(), rows = box.elements() / columns;
  return transposed ? std::vector{columns, rows} : std::vector{rows, columns};
}

void add_tensors(const Family& family, const ParameterSpec& parameter, std::vector<HuggingFaceTensor>& list) {
  const ParameterName name = taken_apart(parameter.name);
  const ModuleName& module = module_of(family, name.module);
  const std::string prefix = name.layer.empty() ? "" : family.layers + name.layer + ".";
  const bool is_matrix = name.kind == "weight" && parameter.shape.size() > 1;
  if (const std::string pattern = module.theirs[0]; pattern.find('*') != std::string::npos) {
    for (int64_t number = 0; number < parameter.shape[0]; ++number) {
      Box box{std::vector<int64_t>(parameter.shape.size(), 0), parameter.shape};
      box.offset[0] = number;
      box.extent[0] = 1;
      std::string theirs = pattern;
      theirs.replace(theirs.find('*'), 1, std::to_string(number));
      list.push_back({prefix + theirs + "." + name.kind, their_shape(box, is_matrix, false), parameter.name, box, false});
    }
    return;
  }
  for (size_t part = 0; part < module.theirs.size() && module.theirs[part] != nullptr; ++part) {
    Box box{std::vector<int64_t>(parameter.shape.size(), 0), parameter.shape};
    if (module.theirs[1] != nullptr) {
      box.offset[0] = static_cast<int64_t>(part);
      box.extent[0] = 1;
    }
    const bool transposed = is_matrix && module.transposed;
    list.push_back({prefix + module.theirs[part] + "." + name.kind, their_shape(box, is_matrix, transposed),
                    parameter.name, box, transposed});
  }
}

}  // namespace

std::vector<HuggingFaceTensor> hugging_face_tensors(const ModelSpec& model) {
  const Family& family = family_of(model);
  std::vector<HuggingFaceTensor> list;
  for (const ParameterSpec& parameter : declare_parameters(model, {})) add_tensors(family, parameter, list);
  return list;
}

std::string hugging_face_type(const ModelSpec& model) { return family_of(model).type; }

std::vector<std::string> hugging_face_aliases(const ModelSpec& model, const std::string& theirs) {
  std::vector<std::string> names = {theirs};
  const std::string transformer = "transformer.";
  if (theirs.starts_with(transformer)) names.push_back(theirs.substr(transformer.size()));
  const bool is_embedding = theirs == "transformer.wte.weight" || theirs == "model.embed_tokens.weight";
  if (is_embedding && model.tied) names.push_back("lm_head.weight");
  return names;
}

bool is_hugging_face_constant(const std::string& theirs) {
  // GPT-2's causal masks, and the frequencies that early Llama files hold.
  return theirs.ends_with(".attn.bias") || theirs.ends_with(".attn.masked_bias") ||
         theirs.ends_with(".rotary_emb.inv_freq");
}

}  // namespace ridgeline::spec
