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
      : model_(model), strategy_(strategy), residual_(residual_placement(strategy)) {}

  // A matrix or bias whose rows or columns are divided over the tensor axis.
  void sharded(const std::string& name, std::vector<int64_t> shape, int64_t dim, std::vector<int64_t> units, double std) {
    const Placement value = Placement::shard(dim);
    // Biases start at zero (std 0) and do not decay.
    list_.push_back({name, std::move(shape), value, gradient_placement(value, Placement::replicate()), std::move(units),
                     std > 0 ? Initial::normal : Initial::zeros, std, std > 0});
  }

  // A parameter that every rank of the tensor axis holds and that acts on the residual stream.
  void replicated(const std::string& name, std::vector<int64_t> shape, int64_t unit, Initial initial, double std = 0.0) {
    replicated_on(residual_, name, std::move(shape), unit, initial, std);
  }

  // One that acts on activations of another placement.
  void replicated_on(const Placement& acts_on, const std::string& name, std::vector<int64_t> shape, int64_t unit,
                     Initial initial, double std) {
    const Placement value = Placement::replicate();
    list_.push_back({name, std::move(shape), value, gradient_placement(value, acts_on), {unit}, initial, std,
                     initial == Initial::normal});
  }

  // A matrix for each expert: experts over dim 0, and of each one `dim`, unless experts are whole.
  void expert(const std::string& name, std::vector<int64_t> shape, int64_t dim, int64_t unit, double std) {
    const Placement value = strategy_.keeps_experts_whole() ? Placement::replicate() : Placement::shard(dim);
    list_.push_back({name, std::move(shape), value, value, {unit}, Initial::normal, std, true, Placement::shard(0)});
  }

  // Of a matrix that acts on the rows that go to experts.
  void beside_experts(const std::string& name, std::vector<int64_t> shape, int64_t dim, int64_t unit, double std) {
    if (strategy_.keeps_experts_whole()) {
      replicated_on(Placement::shard(0), name, std::move(shape), unit, Initial::normal, std);
    } else {
      sharded(name, std::move(shape), dim, {unit}, std);
    }
  }

  // Each rank of the tensor axis sees what its rows, or its parts of all experts, make of the weights. Tokens are counted
  // by every rank that has their row.
  void router(const std::string& prefix, int64_t unit, double std) {
    replicated_on(Placement::shard(0), prefix + "router.weight", {model_.experts, model_.hidden}, unit, Initial::normal,
                  std);
    if (model_.router_bias_rate <= 0) return;
    const Placement rows = strategy_.keeps_experts_whole() ? Placement::shard(0) : Placement::replicate();
    replicated_on(rows, prefix + "router.balance", {model_.experts}, unit, Initial::zeros, 0.0);
    list_.back().update = Update::balance;
  }

  void norm(const std::string& name, int64_t unit) {
    replicated(name + ".weight", {model_.hidden}, unit, Initial::ones);
    if (model_.norm == Norm::layer_norm) replicated(name + ".bias", {model_.hidden}, unit, Initial::zeros);
  }

  std::vector<ParameterSpec> take() { return std::move(list_); }

 private:
  const ModelSpec& model_;
  const Strategy& strategy_;
  Placement residual_;
  std::vector<ParameterSpec> list_;
};

// Query, key and value. Where they are alike they are a dimension of their own: then a shard of dim 1 is whole heads of
// each of the three.
void declare_qkv(Declarations& declare, const ModelSpec& model, const std::string& prefix, int64_t unit) {
  const bool biased = model.biases != Biases::none;
  if (model.fused_qkv()) {
    declare.sharded(prefix + "qkv.weight", {3, model.hidden, model.hidden}, 1, {unit}, model.init_std);
    if (biased) declare.sharded(prefix + "qkv.bias", {3, model.hidden}, 1, {unit}, 0.0);
  } else {
    const auto matrix = [&](const std::string& name, int64_t rows) {
      declare.sharded(prefix + name + ".weight", {rows, model.hidden}, 0, {unit}, model.init_std);
      if (biased) declare.sharded(prefix + name + ".bias", {rows}, 0, {unit}, 0.0);
    };
    matrix("query", model.query_width());
    matrix("key", model.key_width());
    matrix("value", model.key_width());
  }
  if (!model.qk_norm) return;
  // Each rank of the tensor axis norms its own heads with the weights that all share.
  for (const char* name : {"query_norm.weight", "key_norm.weight"}) {
    declare.replicated_on(Placement::shard(1), prefix + name, {model.head_size()}, unit, Initial::ones, 0.0);
  }
}

void declare_mlp(Declarations& declare, const ModelSpec& model, const std::string& prefix, int64_t unit,
                 double output_std) {
  const int64_t width = model.ffn();
  const bool biased = model.biases == Biases::all;
  if (model.gated_mlp) {
    declare.sharded(prefix + "gate.weight", {width, model.hidden}, 0, {unit}, model.init_std);
    if (biased) declare.sharded(prefix + "gate.bias", {width}, 0, {unit}, 0.0);
  }
  declare.sharded(prefix + "up.weight", {width, model.hidden}, 0, {unit}, model.init_std);
  if (biased) declare.sharded(prefix + "up.bias", {width}, 0, {unit}, 0.0);
  declare.sharded(prefix + "down.weight", {model.hidden, width}, 1, {unit}, output_std);
  if (biased) declare.replicated(prefix + "down.bias", {model.hidden}, unit, Initial::zeros);
}

// The experts' matrices are one parameter of each kind, with a first dim of the experts.
void declare_experts(Declarations& declare, const ModelSpec& model, const std::string& prefix, int64_t unit,
                     double output_std) {
  const int64_t experts = model.experts, hidden = model.hidden, width = model.expert_ffn();
  const int64_t shared = model.shared_ffn_hidden;
  declare.router(prefix, unit, model.init_std);
  if (model.gated_mlp) declare.expert(prefix + "experts.gate.weight", {experts, width, hidden}, 1, unit, model.init_std);
  declare.expert(prefix + "experts.up.weight", {experts, width, hidden}, 1, unit, model.init_std);
  declare.expert(prefix + "experts.down.weight", {experts, hidden, width}, 2, unit, output_std);
  if (shared == 0) return;
  if (model.gated_mlp) declare.beside_experts(prefix + "shared.gate.weight", {shared, hidden}, 0, unit, model.init_std);
  declare.beside_experts(prefix + "shared.up.weight", {shared, hidden}, 0, unit, model.init_std);
  declare.beside_experts(prefix + "shared.down.weight", {hidden, shared}, 1, unit, output_std);
}

void declare_layer(Declarations& declare, const ModelSpec& model, int64_t layer) {
  const int64_t unit = layer_unit(layer);
  const std::string prefix = "layers." + std::to_string(layer) + ".";
  const double output_std = model.init_std / std::sqrt(2.0 * static_cast<double>(model.layers));
  declare.norm(prefix + "attention_norm", unit);
  declare_qkv(declare, model, prefix + "attention.", unit);
  declare.sharded(prefix + "attention.output.weight", {model.hidden, model.query_width()}, 1, {unit}, output_std);
  if (model.biases == Biases::all || model.biases == Biases::attention) {
    declare.replicated(prefix + "attention.output.bias", {model.hidden}, unit, Initial::zeros);
  }
  declare.norm(prefix + "mlp_norm", unit);
  if (model.experts > 0) {
    declare_experts(declare, model, prefix + "mlp.", unit, output_std);
  } else {
    declare_mlp(declare, model, prefix + "mlp.", unit, output_std);
  }
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
  if (model.positions == Positions::learned) {
    declare.replicated("embedding.position.weight", {model.sequence, model.hidden}, embedding_unit(), Initial::normal,
                       model.init_std);
  }
  if (model.embedding_norm) declare.norm("embedding.norm", embedding_unit());
  for (int64_t layer = 0; layer < model.layers; ++layer) declare_layer(declare, model, layer);
  declare.norm("final_norm", head_unit(model));
  if (!model.tied) {
    declare.sharded("head.weight", {model.vocabulary, model.hidden}, 0, {head_unit(model)}, model.init_std);
  }
  return declare.take();
}

namespace {

// Layers are alike: one is declared and counted for all.
template <typename Elements>
int64_t count(const ModelSpec& model, Elements elements) {
  ModelSpec one_layer = model;
  one_layer.layers = 1;
  int64_t total = 0;
  for (const ParameterSpec& parameter : declare_parameters(one_layer, Strategy{})) {
    total += elements(parameter) * (parameter.name.starts_with("layers.") ? model.layers : 1);
  }
  return total;
}

}  // namespace

int64_t parameter_count(const ModelSpec& model) {
  return count(model, [](const ParameterSpec& parameter) { return parameter.elements(); });
}

int64_t active_parameter_count(const ModelSpec& model) {
  return count(model, [&](const ParameterSpec& parameter) {
    return parameter.is_expert() ? parameter.elements() / model.experts * model.experts_per_token : parameter.elements();
  });
}

}  // namespace ridgeline::spec
