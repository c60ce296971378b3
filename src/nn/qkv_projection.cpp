#include "nn/qkv_projection.h"

#include <array>

#include "nn/kernels/rms_norm.h"

namespace ridgeline::nn {
namespace {

Linear projection(const FlatParameters& parameters, const std::string& name) {
  return Linear(parameters.parameter(name + ".weight"), parameters.parameter_if_declared(name + ".bias"));
}

// Rows of a projection as heads: the placement of the projection keeps heads whole.
spec::Range heads_in(const spec::Range& rows, int64_t head_size) {
  return {rows.begin / head_size, rows.end / head_size};
}

}  // namespace

void Qkv::visit(const std::function<void(const char*, const at::Tensor&)>& visitor) const {
  if (together.defined()) {
    visitor("qkv", together);
  } else {
    visitor("query", query);
    visitor("key", key);
    visitor("value", value);
  }
  visitor("query before norm", query_before_norm);
  visitor("query norm rstd", query_rstd);
  visitor("key before norm", key_before_norm);
  visitor("key norm rstd", key_rstd);
}

QkvProjection::QkvProjection(const Context& context, const FlatParameters& parameters, const std::string& prefix,
                             const Rotary* rotary)
    : head_size_(context.model.head_size()),
      epsilon_(context.model.norm_epsilon),
      rotary_(rotary),
      query_(projection(parameters, prefix + (context.model.fused_qkv() ? "qkv" : "query"))),
      query_norm_(parameters.parameter_if_declared(prefix + "query_norm.weight")),
      key_norm_(parameters.parameter_if_declared(prefix + "key_norm.weight")),
      fused_(context.model.fused_qkv()) {
  if (fused_) {
    heads_ = heads_in(parameters.parameter(prefix + "qkv.weight").held(1), head_size_);
    key_heads_ = heads_.size();
  } else {
    key_ = projection(parameters, prefix + "key");
    value_ = projection(parameters, prefix + "value");
    heads_ = heads_in(parameters.parameter(prefix + "query.weight").held(0), head_size_);
    key_heads_ = heads_in(parameters.parameter(prefix + "key.weight").held(0), head_size_).size();
  }
}

at::Tensor QkvProjection::by_head(const at::Tensor& rows) const { return rows.view({rows.size(0), -1, head_size_}); }

at::Tensor QkvProjection::as_heads(const at::Tensor& rows, int64_t samples) const {
  return rows.view({samples, rows.size(0) / samples, -1, head_size_}).transpose(1, 2);
}

void QkvProjection::norm_and_rotate(at::Tensor& part, const Parameter& norm, const at::Tensor& positions,
                                    at::Tensor& before, at::Tensor& rstd) const {
  if (norm.value.defined()) {
    before = part.contiguous();
    auto [normed, statistic] = rms_norm_forward(before.view({-1, head_size_}), norm.value, epsilon_);
    rstd = statistic;
    if (fused_) {
      part.copy_(normed.view(part.sizes()));
    } else {
      part = normed.view(part.sizes());
    }
  }
  if (rotary_ != nullptr) rotary_->forward(by_head(part), positions);
}

Qkv QkvProjection::forward(const at::Tensor& input, const at::Tensor& positions) const {
  Qkv qkv;
  if (fused_) {
    qkv.together = query_.forward(input);
    const int64_t width = qkv.together.size(1) / 3;
    qkv.query = qkv.together.narrow(1, 0, width);
    qkv.key = qkv.together.narrow(1, width, width);
    qkv.value = qkv.together.narrow(1, 2 * width, width);
  } else {
    qkv.query = query_.forward(input);
    qkv.key = key_.forward(input);
    qkv.value = value_.forward(input);
  }
  norm_and_rotate(qkv.query, query_norm_, positions, qkv.query_before_norm, qkv.query_rstd);
  norm_and_rotate(qkv.key, key_norm_, positions, qkv.key_before_norm, qkv.key_rstd);
  return qkv;
}

void QkvProjection::drop_recomputable(Qkv& qkv) const {
  if (fused_ || !query_norm_.value.defined()) return;
  qkv.query.reset();
  qkv.key.reset();
}

at::Tensor QkvProjection::norm_again(const Parameter& norm, const at::Tensor& positions, const at::Tensor& before,
                                     const at::Tensor& rstd) const {
  const at::Tensor part =
      rms_norm_recompute(before.view({-1, head_size_}), rstd, norm.value).view(before.sizes());
  if (rotary_ != nullptr) rotary_->forward(by_head(part), positions);
  return part;
}

void QkvProjection::recompute(Qkv& qkv, const at::Tensor& positions) const {
  if (qkv.query.defined()) return;
  qkv.query = norm_again(query_norm_, positions, qkv.query_before_norm, qkv.query_rstd);
  qkv.key = norm_again(key_norm_, positions, qkv.key_before_norm, qkv.key_rstd);
}

// `gradient` is dense and may be overwritten.
at::Tensor QkvProjection::undo(const at::Tensor& gradient, const Parameter& norm, const at::Tensor& positions,
                               const at::Tensor& before, const at::Tensor& rstd) const {
  if (rotary_ != nullptr) rotary_->backward(by_head(gradient), positions);
  if (!norm.value.defined()) return gradient;
  return rms_norm_backward(gradient.view({-1, head_size_}), before.view({-1, head_size_}), rstd, norm.value,
                           norm.gradient)
      .view(gradient.sizes());
}

BranchGradients QkvProjection::backward(const AttentionGradients& gradients, const at::Tensor& positions,
                                        Qkv& qkv) const {
  const auto rows = [&](const at::Tensor& heads) {
    return heads.transpose(1, 2).reshape({heads.size(0) * heads.size(2), -1});
  };
  const at::Tensor query = undo(rows(gradients.q), query_norm_, positions, qkv.query_before_norm, qkv.query_rstd);
  const at::Tensor key = undo(rows(gradients.k), key_norm_, positions, qkv.key_before_norm, qkv.key_rstd);
  const at::Tensor value = rows(gradients.v);
  qkv = {};
  if (fused_) {
    const at::Tensor together = at::cat({query, key, value}, 1);
    return {query_.input_gradient(together), {{&query_, together}}};
  }
  at::Tensor input = query_.input_gradient(query);
  key_.add_input_gradient(input, key);
  value_.add_input_gradient(input, value);
  return {input, {{&query_, query}, {&key_, key}, {&value_, value}}};
}

}  // namespace ridgeline::nn
