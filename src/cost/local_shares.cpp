#include "cost/local_shares.h"

#include <algorithm>

#include "core/error.h"
#include "spec/parameters.h"

namespace ridgeline::cost {
namespace {

void add_elements(LocalShares& shares, const spec::ModelSpec& model, const spec::ParameterSpec& parameter,
                  double elements) {
  const int64_t unit = parameter.units.front();
  if (unit == spec::embedding_unit()) shares.embedding += elements;
  if (unit == spec::layer_unit(0)) shares.layer += elements;
  if (unit == spec::head_unit(model)) shares.head += elements;
  if (parameter.units.size() > 1) shares.tied += elements;
  if (parameter.is_expert()) shares.experts += elements;
  shares.largest = std::max(shares.largest, elements);
}

// `name` is without the layer's prefix.
void add_width(LocalShares& shares, const std::string& name, const std::vector<int64_t>& extent) {
  if (name == "attention.qkv.weight") shares.query_width = shares.key_width = extent[1];
  if (name == "attention.query.weight") shares.query_width = extent[0];
  if (name == "attention.key.weight") shares.key_width = extent[0];
  if (name == "mlp.up.weight") shares.mlp_width = extent[0];
  if (name == "mlp.experts.up.weight") shares.expert_width = extent[1];
  if (name == "mlp.shared.up.weight") shares.shared_width = extent[0];
  if (name == "embedding.token.weight") shares.vocabulary = extent[0];
}

}  // namespace

int64_t LocalShares::stream_rows(const spec::ModelSpec& model, const spec::Strategy& strategy) {
  const std::vector<int64_t> stream = {strategy.held_rows(model), model.hidden};
  return spec::local_box(stream, spec::residual_placement(strategy), strategy.tensor, 0).extent[0];
}

LocalShares local_shares(const spec::ModelSpec& model, int64_t tensor) {
  spec::Strategy strategy;
  strategy.tensor = tensor;
  return local_shares(model, strategy);
}

LocalShares local_shares(const spec::ModelSpec& model, const spec::Strategy& strategy) {
  spec::ModelSpec one_layer = model;  // all layers are alike
  one_layer.layers = 1;
  const std::string prefix = "layers.0.";
  LocalShares shares;
  for (const spec::ParameterSpec& parameter : spec::declare_parameters(one_layer, strategy)) {
    const spec::Box box = spec::local_box(parameter.shape, parameter.value, strategy.tensor, 0);
    const double ranks = parameter.is_expert() ? static_cast<double>(strategy.expert) : 1.0;  // experts divide by them
    add_elements(shares, one_layer, parameter, static_cast<double>(box.elements()) / ranks);
    const std::string& name = parameter.name;
    add_width(shares, name.starts_with(prefix) ? name.substr(prefix.size()) : name, box.extent);
  }
  RIDGELINE_ASSERT(shares.query_width > 0 && shares.key_width > 0 && shares.vocabulary > 0 &&
                   shares.mlp_width + shares.expert_width > 0);
  return shares;
}

}  // namespace ridgeline::cost
