#include "nn/mlp_branch.h"

#include "nn/kernels/gelu.h"

namespace ridgeline::nn {
namespace {

struct MlpSaved : SavedRecord {
  at::Tensor pre_activation;  // [rows, local ffn], without the bias: GELU adds it on the fly
  at::Tensor activation;      // GELU of it
  void visit(const std::function<void(const char*, const at::Tensor&)>& visitor) const override {
    visitor("pre-activation", pre_activation);
    visitor("activation", activation);
  }
};

}  // namespace

MlpBranch::MlpBranch(const FlatParameters& parameters, const std::string& prefix)
    : up_(parameters.parameter(prefix + "up.weight"), parameters.parameter_if_declared(prefix + "up.bias")),
      down_(parameters.parameter(prefix + "down.weight")) {}

at::Tensor MlpBranch::forward(const at::Tensor& input, const MicroBatch&, Saved* saved) const {
  at::Tensor pre_activation = up_.product(input);
  at::Tensor activation = at::empty_like(pre_activation);
  gelu_forward(pre_activation, up_.bias(), activation);
  at::Tensor output = down_.forward(activation);
  if (saved != nullptr) {
    auto record = std::make_unique<MlpSaved>();
    record->pre_activation = std::move(pre_activation);
    record->activation = std::move(activation);
    *saved = std::move(record);
  }
  return output;
}

BranchGradients MlpBranch::backward(const at::Tensor& output_gradient, const MicroBatch&, SavedRecord& saved,
                                    WeightGradientQueue& weights) const {
  auto& record = static_cast<MlpSaved&>(saved);
  at::Tensor gradient = down_.input_gradient(output_gradient);
  weights.add(down_, std::move(record.activation), output_gradient);
  gelu_backward(gradient, record.pre_activation, up_.bias());
  record.pre_activation.reset();
  return {up_.input_gradient(gradient), {{&up_, gradient}}};
}

void MlpBranch::drop_recomputable(SavedRecord& saved) const { static_cast<MlpSaved&>(saved).activation.reset(); }

void MlpBranch::recompute(SavedRecord& saved, const MicroBatch&) const {
  auto& record = static_cast<MlpSaved&>(saved);
  record.activation = at::empty_like(record.pre_activation);
  gelu_forward(record.pre_activation, up_.bias(), record.activation);
}

}  // namespace ridgeline::nn
