#include "nn/gated_mlp_branch.h"

#include "nn/kernels/swiglu.h"

namespace ridgeline::nn {
namespace {

struct GatedMlpSaved : SavedRecord {
  at::Tensor gate, up;    // [rows, local ffn]
  at::Tensor activation;  // SwiGLU of them
  void visit(const std::function<void(const char*, const at::Tensor&)>& visitor) const override {
    visitor("gate", gate);
    visitor("up", up);
    visitor("activation", activation);
  }
};

Linear with_bias(const FlatParameters& parameters, const std::string& name) {
  return Linear(parameters.parameter(name + ".weight"), parameters.parameter_if_declared(name + ".bias"));
}

at::Tensor activation_of(const at::Tensor& gate, const at::Tensor& up) {
  at::Tensor activation = at::empty_like(gate);
  swiglu_forward(gate, up, activation);
  return activation;
}

}  // namespace

GatedMlpBranch::GatedMlpBranch(const FlatParameters& parameters, const std::string& prefix)
    : gate_(with_bias(parameters, prefix + "gate")),
      up_(with_bias(parameters, prefix + "up")),
      down_(parameters.parameter(prefix + "down.weight")) {}

at::Tensor GatedMlpBranch::forward(const at::Tensor& input, const MicroBatch&, Saved* saved) const {
  at::Tensor gate = gate_.forward(input), up = up_.forward(input);
  at::Tensor activation = activation_of(gate, up);
  at::Tensor output = down_.forward(activation);
  if (saved != nullptr) {
    auto record = std::make_unique<GatedMlpSaved>();
    record->gate = std::move(gate);
    record->up = std::move(up);
    record->activation = std::move(activation);
    *saved = std::move(record);
  }
  return output;
}

BranchGradients GatedMlpBranch::backward(const at::Tensor& output_gradient, const MicroBatch&, SavedRecord& saved,
                                         WeightGradientQueue& weights) const {
  auto& record = static_cast<GatedMlpSaved&>(saved);
  const at::Tensor gradient = down_.input_gradient(output_gradient);
  weights.add(down_, std::move(record.activation), output_gradient);
  const at::Tensor gate = std::move(record.gate), up = std::move(record.up);
  swiglu_backward(gradient, gate, up);  // which makes them their gradients
  at::Tensor input = gate_.input_gradient(gate);
  up_.add_input_gradient(input, up);
  return {input, {{&gate_, gate}, {&up_, up}}};
}

void GatedMlpBranch::drop_recomputable(SavedRecord& saved) const {
  static_cast<GatedMlpSaved&>(saved).activation.reset();
}

void GatedMlpBranch::recompute(SavedRecord& saved, const MicroBatch&) const {
  auto& record = static_cast<GatedMlpSaved&>(saved);
  record.activation = activation_of(record.gate, record.up);
}

}  // namespace ridgeline::nn
