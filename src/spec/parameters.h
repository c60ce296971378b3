// The declared parameters of a model: names, global shapes, initial values, and the placement of value and gradient on
// the tensor axis. Everything that is stored, reduced, sharded, saved or imported is derived from this list.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "spec/model.h"
#include "spec/placement.h"
#include "spec/strategy.h"

namespace ridgeline::spec {

enum class Initial { zeros, ones, normal };
// balance: the gradient is the number of tokens that each expert got in a step; those with fewer than an even share go up
// by model.router_bias_rate, the others down (Wang et al., arXiv 2408.15664).
enum class Update { adamw, balance };

struct ParameterSpec {
  std::string name;              // global and layout-free, such as "layers.3.attention.qkv.weight"
  std::vector<int64_t> shape;    // global
  Placement value;               // on the tensor axis; on the data axis values are replicated
  Placement gradient;            // on the tensor axis, as backward leaves it; on the data axis gradients are partial
  std::vector<int64_t> units;    // units of the model that use it; more than one: tied, gradient partial over their stages
  Initial initial = Initial::normal;
  double std = 0.0;              // for Initial::normal
  bool decay = true;             // weight decay applies
  Placement expert = {};         // on the ranks that experts lie on: shard(0), or replicate for all that is no expert
  Update update = Update::adamw;
  int64_t elements() const;
  bool is_expert() const { return expert.is_shard(); }
};

// A model is a row of units that a pipeline stage holds a contiguous range of:
// unit 0 is the embedding, units 1..layers the transformer layers, unit layers + 1 the final norm with output and loss.
inline int64_t unit_count(const ModelSpec& model) { return model.layers + 2; }
inline int64_t embedding_unit() { return 0; }
inline int64_t layer_unit(int64_t layer) { return layer + 1; }
inline int64_t head_unit(const ModelSpec& model) { return model.layers + 1; }

// Placement of the residual stream [tokens, hidden] on the tensor axis, where tokens are the micro_batch * sequence rows of
// a micro-batch, sample after sample. With sequence parallelism each rank of the axis holds a range of rows.
Placement residual_placement(const Strategy& strategy);

// In order of units; a tied parameter stands at its first unit.
std::vector<ParameterSpec> declare_parameters(const ModelSpec& model, const Strategy& strategy);

int64_t parameter_count(const ModelSpec& model);
// Those that work on one token: of the experts as many as the router picks.
int64_t active_parameter_count(const ModelSpec& model);

}  // namespace ridgeline::spec
