#include "nn/norm.h"

#include "nn/kernels/layer_norm.h"
#include "nn/kernels/rms_norm.h"

namespace ridgeline::nn {

Norm::Norm(const spec::ModelSpec& model, const FlatParameters& parameters, const std::string& name)
    : epsilon_(model.norm_epsilon), weight_(parameters.parameter(name + ".weight")) {
  if (model.norm == spec::Norm::layer_norm) bias_ = parameters.parameter(name + ".bias");
}

at::Tensor Norm::forward(const at::Tensor& input, NormStatistics& statistics) const {
  if (bias_.value.defined()) {
    auto [out, mean, rstd] = layer_norm_forward(input, weight_.value, bias_.value, epsilon_);
    statistics = {mean, rstd};
    return out;
  }
  auto [out, rstd] = rms_norm_forward(input, weight_.value, epsilon_);
  statistics = {{}, rstd};
  return out;
}

at::Tensor Norm::forward(const at::Tensor& input) const {
  NormStatistics dropped;
  return forward(input, dropped);
}

at::Tensor Norm::recompute(const at::Tensor& input, const NormStatistics& statistics) const {
  if (bias_.value.defined()) {
    return layer_norm_recompute(input, statistics.mean, statistics.rstd, weight_.value, bias_.value);
  }
  return rms_norm_recompute(input, statistics.rstd, weight_.value);
}

at::Tensor Norm::backward(const at::Tensor& gradient, const at::Tensor& input, const NormStatistics& statistics,
                          const at::Tensor& residual_gradient) const {
  if (bias_.value.defined()) {
    return layer_norm_backward(gradient, input, statistics.mean, statistics.rstd, weight_.value, weight_.gradient,
                               bias_.gradient, residual_gradient);
  }
  return rms_norm_backward(gradient, input, statistics.rstd, weight_.value, weight_.gradient, residual_gradient);
}

}  // namespace ridgeline::nn
