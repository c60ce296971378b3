// config.json of Hugging Face transformers: the shape of a model.
#include <algorithm>
#include <array>

#include "core/error.h"
#include "core/text.h"
#include "spec/foreign_formats.h"

namespace ridgeline::spec {
namespace {

const std::vector<std::string> kKinds = {"gpt2", "llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen3_moe"};

void read_gpt2_dropout(Reading& reading) {
  ModelSpec& model = reading.config().spec.model;
  // One dropout stands for both; transformers' default of each is 0.1.
  model.dropout = 0.1;
  const bool has_residual = reading.set("/resid_pdrop", model.dropout, "model.dropout");
  if (!has_residual) reading.assume("model.dropout = 0.1 (default of gpt2)");
  if (const auto embedding = reading.number("/embd_pdrop", 0, 1)) {
    if (*embedding != model.dropout) reading.refuse("/embd_pdrop", fmt::format("{} as resid_pdrop", model.dropout));
    reading.understood("/embd_pdrop", assignment("model.dropout", model.dropout));
  }
  model.attention_dropout = 0.1;
  if (!reading.set("/attn_pdrop", model.attention_dropout, "model.attention_dropout")) {
    reading.assume("model.attention_dropout = 0.1 (default of gpt2)");
  }
}

void read_gpt2(Reading& reading) {
  ModelSpec& model = reading.config().spec.model;
  reading.config().has_model = true;
  reading.require("/n_layer", model.layers, "model.layers", "the model's shape");
  reading.require("/n_embd", model.hidden, "model.hidden", "the model's shape");
  reading.require("/n_head", model.heads, "model.heads", "the model's shape");
  reading.require("/vocab_size", model.vocabulary, "model.vocabulary", "the model's shape");
  reading.set("/n_inner", model.ffn_hidden, "model.ffn_hidden", 1);
  reading.require("/n_positions", model.sequence, "model.sequence", "the learned positions");
  reading.ignore("/n_ctx", "n_positions says it");
  if (!reading.set("/tie_word_embeddings", model.tied, "model.tied")) {
    reading.assume("model.tied = true (default of gpt2)");
  }
  reading.set("/layer_norm_epsilon", model.norm_epsilon, "model.norm_epsilon");
  reading.set("/initializer_range", model.init_std, "model.init_std");
  if (const auto activation = reading.text("/activation_function")) {
    if (*activation == "gelu_new" || *activation == "gelu_pytorch_tanh") {
      reading.ignore("/activation_function", "the GELU of Ridgeline");
    } else {
      reading.beyond("/activation_function", "another function at the same place: values change, sizes do not");
    }
  }
  read_gpt2_dropout(reading);
  for (const char* prefix : {"/summary_", "/task_specific_params"}) {
    reading.ignore_below(prefix, "of other tasks than language modelling");
  }
  if (!reading.boolean("/scale_attn_weights").value_or(true)) {
    reading.beyond("/scale_attn_weights", "scores without their scale; no size changes");
  }
  if (reading.boolean("/scale_attn_by_inverse_layer_idx").value_or(false)) {
    reading.beyond("/scale_attn_by_inverse_layer_idx", "scores scaled layer by layer; no size changes");
  }
  reading.ignore({"/scale_attn_weights", "/scale_attn_by_inverse_layer_idx", "/reorder_and_upcast_attn"},
                 "as Ridgeline's attention; no size changes");
}

void read_llama(Reading& reading, const std::string& kind) {
  ModelSpec& model = reading.config().spec.model;
  read_llama_shape(reading, "/", kind);
  if (!reading.set("/max_position_embeddings", model.sequence, "model.sequence", 1)) {
    reading.miss("model.sequence: the file has no max_position_embeddings");
  }
}

void read_dtype(Reading& reading) {
  Precision& compute = reading.config().spec.precision.compute;
  for (const char* name : {"/torch_dtype", "/dtype"}) {
    const auto dtype = reading.text(name);
    if (!dtype) continue;
    if (*dtype == "bfloat16") compute = Precision::bf16;
    if (*dtype == "float16") compute = Precision::fp16;
    if (*dtype == "bfloat16" || *dtype == "float16" || *dtype == "float32") {
      reading.understood(name, assignment("precision.compute", to_string(compute)) + " (as the weights are stored)");
    }
  }
}

}  // namespace

void read_hugging_face(Reading& reading) {
  const auto kind = reading.text("/model_type");
  if (!kind) reading.refuse("/model_type", "one of " + join(kKinds));
  if (std::find(kKinds.begin(), kKinds.end(), *kind) == kKinds.end()) {
    reading.refuse("/model_type", fmt::format("one of {}{}", join(kKinds), did_you_mean(*kind, kKinds)));
  }
  reading.config().format = fmt::format("Hugging Face config.json ({})", *kind);
  reading.understood("/model_type", "the family of the model");
  if (*kind == "gpt2") {
    read_gpt2(reading);
  } else {
    read_llama(reading, *kind);
  }
  read_dtype(reading);
  reading.ignore({"/architectures", "/transformers_version", "/_name_or_path", "/auto_map"},
                 "says who made the file for what");
  reading.ignore({"/use_cache", "/pad_token_id", "/bos_token_id", "/eos_token_id"},
                 "of running the model, not of its shape");
}

}  // namespace ridgeline::spec
