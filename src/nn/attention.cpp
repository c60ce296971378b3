#include "nn/attention.h"

#include <cmath>

#include "core/error.h"
#include "nn/attention_plain.h"

namespace ridgeline::nn {
namespace {

enum class Kernel { flash_cpu, flash, efficient, plain };

// One row a device: what it can do without falling back silently inside libtorch.
Kernel kernel_for(at::Device device, at::ScalarType type, const AttentionPattern& pattern) {
  // Probabilities are dropped by our own counters, which no fused kernel knows.
  if (pattern.dropout.probability > 0) return Kernel::plain;
  if (device.is_cpu()) return Kernel::flash_cpu;
  // ROCm says cuda as well. Its flash kernel takes neither fp32 nor a mask.
  if (device.is_cuda()) return type == at::kFloat || pattern.has_mask() ? Kernel::efficient : Kernel::flash;
  return Kernel::plain;
}

// What is added to scores for keys that are hidden; nothing where none is. Rows are padded in memory as the efficient
// kernel wants them.
std::optional<at::Tensor> mask_of(const at::Tensor& q, const at::Tensor& k, const AttentionPattern& pattern) {
  const at::Tensor hidden = hidden_keys(pattern, q.size(2), k.size(2), q.device());
  if (!hidden.defined()) return std::nullopt;
  constexpr int64_t kAlignment = 16;
  std::vector<int64_t> padded = hidden.sizes().vec();
  padded.back() = (padded.back() + kAlignment - 1) / kAlignment * kAlignment;
  const at::Tensor mask = at::zeros(padded, q.options()).narrow(-1, 0, k.size(2));
  return mask.masked_fill_(hidden, hidden_score(q.scalar_type()));
}

// The efficient kernel has a key head for each query head, and a bias of all of them.
struct EfficientInputs {
  at::Tensor k, v;
  std::optional<at::Tensor> bias;
};
EfficientInputs efficient_inputs(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                 const AttentionPattern& pattern) {
  std::optional<at::Tensor> bias = mask_of(q, k, pattern);
  if (bias) bias = bias->expand({q.size(0), q.size(1), q.size(2), k.size(2)});
  return {repeat_heads(k, q.size(1)), repeat_heads(v, q.size(1)), bias};
}

// The efficient kernel's log-sum-exps are padded to a multiple of this.
constexpr int64_t kSumAlignment = 32;
at::Tensor padded_sums(const at::Tensor& log_sum_exp) {
  const int64_t over = log_sum_exp.size(2) % kSumAlignment;
  return over == 0 ? log_sum_exp.contiguous() : at::constant_pad_nd(log_sum_exp, {0, kSumAlignment - over});
}

}  // namespace

at::Tensor repeat_heads(const at::Tensor& heads, int64_t count) {
  return heads.size(1) == count ? heads : heads.repeat_interleave(count / heads.size(1), 1);
}

at::Tensor sum_repeated_heads(const at::Tensor& gradient, int64_t count) {
  if (gradient.size(1) == count) return gradient;
  return gradient.unflatten(1, {count, gradient.size(1) / count}).sum(2, false, at::kFloat).to(gradient.scalar_type());
}

AttentionPattern attention_pattern(const spec::ModelSpec& model) {
  AttentionPattern pattern;
  pattern.scale = 1.0 / std::sqrt(static_cast<double>(model.head_size()));
  pattern.window = model.sliding_window;
  return pattern;
}

double hidden_score(at::ScalarType type) { return type == at::kHalf ? -6e4 : -1e30; }

at::Tensor hidden_keys(const AttentionPattern& pattern, int64_t queries, int64_t keys, at::Device device) {
  at::Tensor hidden = pattern.hidden;
  if (hidden.defined()) return hidden;
  if (pattern.window > 0 && pattern.window < keys) {
    hidden = at::ones({queries, keys}, at::TensorOptions().dtype(at::kBool).device(device)).tril_(-pattern.window);
  }
  if (!pattern.documents.defined()) return hidden;
  const at::Tensor other = pattern.documents.unsqueeze(2).ne(pattern.documents.unsqueeze(1)).unsqueeze(1);
  return hidden.defined() ? hidden.logical_or(other) : other;
}

std::string attention_kernel(at::Device device, at::ScalarType type, const AttentionPattern& pattern) {
  switch (kernel_for(device, type, pattern)) {
    case Kernel::flash_cpu:
      return "flash (cpu)";
    case Kernel::flash:
      return "flash";
    case Kernel::efficient:
      return "efficient";
    case Kernel::plain:
      return "plain";
  }
  throw InternalError("unknown attention kernel");
}

AttentionOutput attention_forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                  const AttentionPattern& pattern) {
  const double scale = pattern.scale;
  switch (kernel_for(q.device(), q.scalar_type(), pattern)) {
    case Kernel::flash_cpu: {
      auto [output, lse] =
          at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, pattern.causal, mask_of(q, k, pattern), scale);
      return {output, lse, {}, {}};
    }
    case Kernel::flash: {
      auto result = at::_scaled_dot_product_flash_attention(q, k, v, 0.0, pattern.causal, false, scale);
      return {std::get<0>(result), std::get<1>(result), std::get<6>(result), std::get<7>(result)};
    }
    case Kernel::efficient: {
      const EfficientInputs in = efficient_inputs(q, k, v, pattern);
      auto [output, lse, seed, offset] =
          at::_scaled_dot_product_efficient_attention(q, in.k, in.v, in.bias, true, 0.0, pattern.causal, scale);
      return {output, lse.narrow(2, 0, q.size(2)), seed, offset};
    }
    case Kernel::plain:
      return plain_attention_forward(q, k, v, pattern);
  }
  throw InternalError("unknown attention kernel");
}

AttentionGradients attention_backward(const at::Tensor& output_gradient, const at::Tensor& q, const at::Tensor& k,
                                      const at::Tensor& v, const AttentionOutput& forward,
                                      const AttentionPattern& pattern) {
  const auto& [output, lse, seed, offset] = forward;
  const double scale = pattern.scale;
  switch (kernel_for(q.device(), q.scalar_type(), pattern)) {
    case Kernel::flash_cpu: {
      auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
          output_gradient, q, k, v, output, lse, 0.0, pattern.causal, mask_of(q, k, pattern), scale);
      return {dq, dk, dv};
    }
    case Kernel::flash: {
      auto [dq, dk, dv] =
          at::_scaled_dot_product_flash_attention_backward(output_gradient, q, k, v, output, lse, {}, {}, q.size(2),
                                                           k.size(2), 0.0, pattern.causal, seed, offset, scale);
      return {dq, dk, dv};
    }
    case Kernel::efficient: {
      const EfficientInputs in = efficient_inputs(q, k, v, pattern);
      auto [dq, dk, dv, dbias] = at::_scaled_dot_product_efficient_attention_backward(
          output_gradient, q, in.k, in.v, in.bias.value_or(at::Tensor()), output, padded_sums(lse), seed, offset, 0.0,
          {true, true, true, false}, pattern.causal, scale);
      return {dq, sum_repeated_heads(dk, k.size(1)), sum_repeated_heads(dv, v.size(1))};
    }
    case Kernel::plain:
      return plain_attention_backward(output_gradient, q, k, v, forward, pattern);
  }
  throw InternalError("unknown attention kernel");
}

}  // namespace ridgeline::nn
