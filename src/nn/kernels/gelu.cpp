#include "nn/kernels/gelu.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "nn/kernels/tensor_access.h"

#define RIDGELINE_TARGET_FILE "nn/kernels/gelu_loops.inl"
#include "core/for_each_target.h"

namespace ridgeline::nn {
namespace {

void check(const at::Tensor& x, const at::Tensor& bias, const at::Tensor& partner) {
  check_dense(x, "gelu: x");
  check_like(partner, x, "gelu: partner of x");
  RIDGELINE_ASSERT(x.dim() >= 1);
  if (bias.defined()) check_vector(bias, x.size(-1), x.scalar_type(), "gelu: bias");
}

// Calls piece(first element, rows, columns). Without a bias rows do not matter and pieces are cut anywhere.
template <typename Piece>
void for_pieces(const at::Tensor& x, bool by_rows, Piece piece) {
  if (!by_rows) {
    at::parallel_for(0, x.numel(), kGrainElements,
                     [&](int64_t begin, int64_t end) { piece(begin, int64_t{1}, end - begin); });
    return;
  }
  const int64_t columns = x.size(-1);
  at::parallel_for(0, columns == 0 ? 0 : x.numel() / columns, rows_per_task(columns),
                   [&](int64_t begin, int64_t end) { piece(begin * columns, end - begin, columns); });
}

}  // namespace

void gelu_forward(const at::Tensor& x, const at::Tensor& bias, const at::Tensor& out) {
  check(x, bias, out);
  if (!x.is_cpu()) return plain::gelu_forward(x, bias, out);
  with_format(x.scalar_type(), [&](auto format) {
    using Format = decltype(format);
    const auto loop = RIDGELINE_PICK(gelu_forward_rows<Format>);
    for_pieces(x, bias.defined(), [&](int64_t first, int64_t rows, int64_t columns) {
      loop(stored<Format>(x) + first, stored<Format>(bias), stored<Format>(out) + first, rows, columns);
    });
  });
}

void gelu_backward(const at::Tensor& gradient, const at::Tensor& x, const at::Tensor& bias) {
  check(x, bias, gradient);
  if (!x.is_cpu()) return plain::gelu_backward(gradient, x, bias);
  with_format(x.scalar_type(), [&](auto format) {
    using Format = decltype(format);
    const auto loop = RIDGELINE_PICK(gelu_backward_rows<Format>);
    for_pieces(x, bias.defined(), [&](int64_t first, int64_t rows, int64_t columns) {
      loop(stored<Format>(gradient) + first, stored<Format>(x) + first, stored<Format>(bias), rows, columns);
    });
  });
}

void plain::gelu_forward(const at::Tensor& x, const at::Tensor& bias, const at::Tensor& out) {
  check(x, bias, out);
  out.copy_(at::gelu(bias.defined() ? x + bias : x, "tanh"));
}

void plain::gelu_backward(const at::Tensor& gradient, const at::Tensor& x, const at::Tensor& bias) {
  check(x, bias, gradient);
  gradient.copy_(at::gelu_backward(gradient, bias.defined() ? x + bias : x, "tanh"));
}

}  // namespace ridgeline::nn
