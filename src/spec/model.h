// ModelSpec: the shape of a model, as plain data. Knows nothing of tensors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "spec/rotary.h"

namespace ridgeline::spec {

enum class Norm { layer_norm, rms_norm };  // weight and bias; weight alone
enum class Positions { learned, rotary };
enum class Biases { all, attention, qkv, none };  // of which matrices; norms have theirs by their kind

// Decoders with the norm before attention and MLP. The defaults are the GPT-2/GPT-3 family: learned positions,
// LayerNorm, GELU (tanh form), biases. The other fields describe Llama-like models (rotary positions, RMS norm, grouped
// key and value heads, a gated MLP) and mixtures of experts, where every layer has the experts in place of the MLP.
// What their router does and what keeps it even is told in nn/router.h.
struct ModelSpec {
  int64_t layers = 4;
  int64_t hidden = 128;
  int64_t heads = 4;
  int64_t kv_heads = 0;      // heads of keys and of values; 0 means heads
  int64_t head_width = 0;    // channels of a head; 0 means hidden / heads
  int64_t ffn_hidden = 0;    // width of the MLP; 0 means 4 * hidden
  int64_t vocabulary = 257;  // any size: shards may be uneven
  int64_t sequence = 128;    // tokens in a sample, and learned positions
  bool tied = true;          // output weight is the token embedding
  bool embedding_norm = false;  // norm of the embeddings' sum, as in BLOOM
  Norm norm = Norm::layer_norm;
  Positions positions = Positions::learned;
  RotarySpec rotary = {};  // where positions are rotary
  Biases biases = Biases::all;
  bool gated_mlp = false;         // SwiGLU: down(silu(gate(x)) * up(x)); else down(gelu(up(x)))
  bool qk_norm = false;           // RMS norm of each head's query and key, one weight for all heads
  int64_t sliding_window = 0;     // keys that a query sees, its own the last of them; 0: all before it
  int64_t experts = 0;            // of a layer; 0: one dense MLP
  int64_t experts_per_token = 2;  // that the router picks
  int64_t expert_ffn_hidden = 0;  // width of an expert; 0 means ffn()
  int64_t shared_ffn_hidden = 0;  // added widths of the experts that every token takes; 0: none
  bool router_normalize = true;   // the weights of a token's experts add up to one
  double router_auxiliary_loss = 0.0;  // factor of the loss that keeps experts evenly used
  double router_z_loss = 0.0;          // factor of the loss that keeps the router's logits small
  double router_bias_rate = 0.0;       // change a step of the bias that evens experts out without a loss; 0: no bias
  double capacity_factor = 0.0;        // times an even share, what an expert takes of a sample in training; 0: all
  double norm_epsilon = 1e-5;
  double init_std = 0.02;  // output projections of attention and MLP: init_std / sqrt(2 * layers)
  double dropout = 0.0;    // embeddings and both residual branches
  double attention_dropout = 0.0;

  int64_t head_size() const { return head_width > 0 ? head_width : hidden / heads; }
  int64_t key_heads() const { return kv_heads > 0 ? kv_heads : heads; }
  int64_t query_width() const { return heads * head_size(); }
  int64_t key_width() const { return key_heads() * head_size(); }
  int64_t ffn() const { return ffn_hidden > 0 ? ffn_hidden : 4 * hidden; }
  // Tokens of a sample that an expert takes at most in training; 0: any number.
  int64_t expert_capacity() const;
  int64_t expert_ffn() const { return expert_ffn_hidden > 0 ? expert_ffn_hidden : ffn(); }
  // Query, key and value are alike and as wide as the residual stream: then they are one parameter of three.
  bool fused_qkv() const { return key_heads() == heads && query_width() == hidden; }
};

// The preset called `name` (the table is in spec/model_presets.cpp).
// Throws InputError that lists the names (and the nearest one) when there is none.
ModelSpec model_preset(const std::string& name);
std::vector<std::string> model_preset_names();

// Throws InputError where a field is out of range or fields contradict each other.
void validate(const ModelSpec& model);

// Throws InputError, naming the key at fault, for a model that planning describes and `train` cannot run yet.
void require_trainable(const ModelSpec& model);
bool is_trainable(const ModelSpec& model);  // the same as an answer

std::string to_string(Norm norm);
std::string to_string(Positions positions);
std::string to_string(Biases biases);

}  // namespace ridgeline::spec
