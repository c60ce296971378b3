#include "nn/layer.h"

#include "nn/attention_branch.h"
#include "nn/dropout_sites.h"
#include "nn/expert_branch.h"
#include "nn/gated_mlp_branch.h"
#include "nn/mlp_branch.h"

namespace ridgeline::nn {
namespace {

struct LayerSaved : SavedRecord {
  at::Tensor input;  // with Recompute::full all that is kept
  Saved attention, mlp;
  void visit(const std::function<void(const char*, const at::Tensor&)>& visitor) const override {
    if (attention == nullptr) {
      visitor("input", input);
    } else {
      attention->visit(visitor);
      mlp->visit(visitor);
    }
  }
};

std::string prefix_of(int64_t layer) { return "layers." + std::to_string(layer) + "."; }

}  // namespace

std::unique_ptr<Branch> make_mlp(const Context& context, const FlatParameters& parameters, int64_t layer) {
  const std::string prefix = prefix_of(layer) + "mlp.";
  if (context.model.experts > 0) return std::make_unique<ExpertBranch>(context, parameters, prefix);
  if (context.model.gated_mlp) return std::make_unique<GatedMlpBranch>(parameters, prefix);
  return std::make_unique<MlpBranch>(parameters, prefix);
}

Layer::Layer(const Context& context, const FlatParameters& parameters, int64_t layer, const Rotary* rotary)
    : context_(context),
      attention_(context, parameters,
                 std::make_unique<AttentionBranch>(context, parameters, prefix_of(layer) + "attention.", layer, rotary),
                 prefix_of(layer) + "attention_norm", prefix_of(layer) + "attention.output.bias", attention_branch_site(layer)),
      mlp_(context, parameters, make_mlp(context, parameters, layer),
           prefix_of(layer) + "mlp_norm", prefix_of(layer) + "mlp.down.bias", mlp_branch_site(layer)) {}

at::Tensor Layer::forward_saving(const at::Tensor& input, const MicroBatch& batch, Saved* attention, Saved* mlp) const {
  return mlp_.forward(attention_.forward(input, batch, attention), batch, mlp);
}

at::Tensor Layer::forward(const at::Tensor& input, const MicroBatch& batch, Saved* saved) const {
  if (saved == nullptr) return forward_saving(input, batch, nullptr, nullptr);
  auto record = std::make_unique<LayerSaved>();
  at::Tensor output;
  if (context_.strategy.recompute == spec::Recompute::full) {
    record->input = input;
    output = forward_saving(input, batch, nullptr, nullptr);
  } else {
    output = forward_saving(input, batch, &record->attention, &record->mlp);
  }
  *saved = std::move(record);
  return output;
}

at::Tensor Layer::backward(const at::Tensor& output_gradient, const MicroBatch& batch, SavedRecord& saved,
                           WeightGradientQueue& weights) const {
  auto& record = static_cast<LayerSaved&>(saved);
  if (record.attention == nullptr) forward_saving(record.input, batch, &record.attention, &record.mlp);
  const at::Tensor gradient = mlp_.backward(output_gradient, batch, *record.mlp, weights);
  record.mlp.reset();
  at::Tensor input_gradient = attention_.backward(gradient, batch, *record.attention, weights);
  record.attention.reset();
  return input_gradient;
}

}  // namespace ridgeline::nn
