#include "spec/parameters.h"

#include <cmath>
#include <functional>
#include <numeric>

#include "core/error.h"

namespace ridgeline::spec {
namespace {

// Collects declarations; each method is one kind of parameter, so that a family below reads as a table.
class Declarations {
 public:
  Declarations(const ModelSpec& model, const Strategy& strategy)
      : model_(model), residual_(residual_placement(strategy)) {}

  // A matrix or bias whose rows or columns are divided over the tensor axis.
  void sharded(const std::string& name, std::vector<int64_t> shape, int64_t dim, std::vector<int64_t> units, double std) {
    const Placement value = Placement::shard(dim);
    // Biases start at zero (std 0) and do not decay.
    list_.push_back({name, std::move(shape), value, gradient_placement(value, Placement::replicate()), std::move(units),
                     std > 0 ? Initial::normal : Initial::zeros, std, std > 0});
  }

  // A parameter that every rank of the tensor axis holds and that acts on the residual stream.
  void replicated(const std::string& name, std::vector<int64_t> shape, int64_t unit, Initial initial, double std = 0.0) {
    const Placement value = Placement::replicate();
    list_.push_back({name, std::move(shape), value, gradient_placement(value, residual_), {unit}, initial, std,
                     initial == Initial::normal});
  }

  void norm(const std::string& name, int64_t unit) {
    replicated(name + ".weight", {model_.hidden}, unit, Initial::ones);
    replicated(name + ".bias", {model_.hidden}, unit, Initial::zeros);
  }

  std::vector<ParameterSpec> take() { return std::move(list_); }

 private:
  const ModelSpec& model_;
  Placement residual_;
  std::vector<ParameterSpec> list_;
};

void declare_layer(Declarations& declare, const ModelSpec& model, int64_t layer) {
  const int64_t unit = layer_unit(layer);
  const std::string prefix = "layers." + std::to_string(layer) + ".";
  const double output_std = model.init_std / std::sqrt(2.0 * static_cast<double>(model.layers));
  declare.norm(prefix + "attention_norm", unit);
  // Query, key and value are a dimension of their own: then a shard of dim 1 is whole heads of each of the three.
  declare.sharded(prefix + "attention.qkv.weight", {3, model.hidden, model.hidden}, 1, {unit}, model.init_std);
  declare.sharded(prefix + "attention.qkv.bias", {3, model.hidden}, 1, {unit}, 0.0);
  declare.sharded(prefix + "attention.output.weight", {model.hidden, model.hidden}, 1, {unit}, output_std);
  declare.replicated(prefix + "attention.output.bias", {model.hidden}, unit, Initial::zeros);
  declare.norm(prefix + "mlp_norm", unit);
  declare.sharded(prefix + "mlp.up.weight", {model.ffn(), model.hidden}, 0, {unit}, model.init_std);
  declare.sharded(prefix + "mlp.up.bias", {model.ffn()}, 0, {unit}, 0.0);
  declare.sharded(prefix + "mlp.down.weight", {model.hidden, model.ffn()}, 1, {unit}, output_std);
  declare.replicated(prefix + "mlp.down.bias", {model.hidden}, unit, Initial::zeros);
}

}  // namespace

int64_t ParameterSpec::elements() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

Placement residual_placement(const Strategy& strategy) {
  return strategy.sequence_parallel ? Placement::shard(0) : Placement::replicate();
}

std::vector<ParameterSpec> declare_parameters(const ModelSpec& model, const Strategy& strategy) {
  Declarations declare(model, strategy);
  std::vector<int64_t> token_units{embedding_unit()};
  if (model.tied) token_units.push_back(head_unit(model));
  declare.sharded("embedding.token.weight", {model.vocabulary, model.hidden}, 0, token_units, model.init_std);
  declare.replicated("embedding.position.weight", {model.sequence, model.hidden}, embedding_unit(), Initial::normal,
                     model.init_std);
  for (int64_t layer = 0; layer < model.layers; ++layer) declare_layer(declare, model, layer);
  declare.norm("final_norm", head_unit(model));
  if (!model.tied) {
    declare.sharded("head.weight", {model.vocabulary, model.hidden}, 0, {head_unit(model)}, model.init_std);
  }
  return declare.take();
}

int64_t parameter_count(const ModelSpec& model) {
  int64_t total = 0;
  for (const ParameterSpec& parameter : declare_parameters(model, Strategy{})) total += parameter.elements();
  return total;
}

}  // namespace ridgeline::spec
