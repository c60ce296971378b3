#include "nn/kernels/swiglu.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "nn/kernels/tensor_access.h"

#define RIDGELINE_TARGET_FILE "nn/kernels/swiglu_loops.inl"
#include "core/for_each_target.h"

namespace ridgeline::nn {
namespace {

void check(const at::Tensor& gate, const at::Tensor& up, const at::Tensor& partner) {
  check_dense(gate, "swiglu: gate");
  check_like(up, gate, "swiglu: up");
  check_like(partner, gate, "swiglu: partner of gate");
}

}  // namespace

void swiglu_forward(const at::Tensor& gate, const at::Tensor& up, const at::Tensor& out) {
  check(gate, up, out);
  if (!gate.is_cpu()) return plain::swiglu_forward(gate, up, out);
  with_format(gate.scalar_type(), [&](auto format) {
    using Format = decltype(format);
    const auto loop = RIDGELINE_PICK(swiglu_forward_elements<Format>);
    at::parallel_for(0, gate.numel(), kGrainElements, [&](int64_t begin, int64_t end) {
      loop(stored<Format>(gate) + begin, stored<Format>(up) + begin, stored<Format>(out) + begin, end - begin);
    });
  });
}

void swiglu_backward(const at::Tensor& gradient, const at::Tensor& gate, const at::Tensor& up) {
  check(gate, up, gradient);
  if (!gate.is_cpu()) return plain::swiglu_backward(gradient, gate, up);
  with_format(gate.scalar_type(), [&](auto format) {
    using Format = decltype(format);
    const auto loop = RIDGELINE_PICK(swiglu_backward_elements<Format>);
    at::parallel_for(0, gate.numel(), kGrainElements, [&](int64_t begin, int64_t end) {
      loop(stored<Format>(gradient) + begin, stored<Format>(gate) + begin, stored<Format>(up) + begin, end - begin);
    });
  });
}

void plain::swiglu_forward(const at::Tensor& gate, const at::Tensor& up, const at::Tensor& out) {
  check(gate, up, out);
  out.copy_(at::silu(gate.to(at::kFloat)).mul_(up));
}

void plain::swiglu_backward(const at::Tensor& gradient, const at::Tensor& gate, const at::Tensor& up) {
  check(gate, up, gradient);
  const at::Tensor dy = gradient.to(at::kFloat), g = gate.to(at::kFloat);
  const at::Tensor gate_gradient = at::silu_backward(dy * up, g);
  up.copy_(at::silu(g).mul_(dy));
  gate.copy_(gate_gradient);
}

}  // namespace ridgeline::nn
