#include "nn/attention.h"

#include "core/error.h"
#include "nn/attention_plain.h"

namespace ridgeline::nn {
namespace {

enum class Kernel { flash_cpu, flash, efficient, plain };

// One row a device: what it can do without falling back silently inside libtorch.
Kernel kernel_for(at::Device device, at::ScalarType type, bool dropout) {
  // Probabilities are dropped by our own counters, which no fused kernel knows.
  if (dropout) return Kernel::plain;
  if (device.is_cpu()) return Kernel::flash_cpu;
  if (device.is_cuda()) return type == at::kFloat ? Kernel::efficient : Kernel::flash;  // ROCm says cuda as well
  return Kernel::plain;
}

}  // namespace

std::string attention_kernel(at::Device device, at::ScalarType type, bool dropout) {
  switch (kernel_for(device, type, dropout)) {
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

AttentionOutput attention_forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double scale,
                                  const AttentionDropout& dropout) {
  switch (kernel_for(q.device(), q.scalar_type(), dropout.probability > 0)) {
    case Kernel::flash_cpu: {
      auto [output, lse] = at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, true, {}, scale);
      return {output, lse, {}, {}};
    }
    case Kernel::flash: {
      auto result = at::_scaled_dot_product_flash_attention(q, k, v, 0.0, true, false, scale);
      return {std::get<0>(result), std::get<1>(result), std::get<6>(result), std::get<7>(result)};
    }
    case Kernel::efficient: {
      auto [output, lse, seed, offset] = at::_scaled_dot_product_efficient_attention(q, k, v, {}, true, 0.0, true, scale);
      return {output, lse, seed, offset};
    }
    case Kernel::plain:
      return plain_attention_forward(q, k, v, scale, dropout);
  }
  throw InternalError("unknown attention kernel");
}

AttentionGradients attention_backward(const at::Tensor& output_gradient, const at::Tensor& q, const at::Tensor& k,
                                      const at::Tensor& v, const AttentionOutput& forward, double scale,
                                      const AttentionDropout& dropout) {
  const auto& [output, lse, seed, offset] = forward;
  switch (kernel_for(q.device(), q.scalar_type(), dropout.probability > 0)) {
    case Kernel::flash_cpu: {
      auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(output_gradient, q, k, v, output, lse,
                                                                                  0.0, true, {}, scale);
      return {dq, dk, dv};
    }
    case Kernel::flash: {
      auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_backward(
          output_gradient, q, k, v, output, lse, {}, {}, q.size(2), k.size(2), 0.0, true, seed, offset, scale);
      return {dq, dk, dv};
    }
    case Kernel::efficient: {
      auto [dq, dk, dv, dbias] = at::_scaled_dot_product_efficient_attention_backward(
          output_gradient, q, k, v, {}, output, lse, seed, offset, 0.0, {true, true, true, false}, true, scale);
      return {dq, dk, dv};
    }
    case Kernel::plain:
      return plain_attention_backward(output_gradient, q, k, v, forward, scale, dropout);
  }
  throw InternalError("unknown attention kernel");
}

}  // namespace ridgeline::nn
