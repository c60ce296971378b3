#include "nn/kernels/layer_norm.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cmath>

#include "nn/kernels/accumulate.h"
#include "nn/kernels/tensor_access.h"

#define RIDGELINE_TARGET_FILE "nn/kernels/layer_norm_loops.inl"
#include "core/for_each_target.h"

namespace ridgeline::nn {
namespace {

int64_t check_forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  check_dense(x, "layer_norm: x");
  RIDGELINE_ASSERT(x.dim() >= 1 && x.size(-1) > 0);
  check_vector(weight, x.size(-1), x.scalar_type(), "layer_norm: weight");
  check_vector(bias, x.size(-1), x.scalar_type(), "layer_norm: bias");
  return x.numel() / x.size(-1);
}

int64_t check_backward(const at::Tensor& gradient, const at::Tensor& x, const at::Tensor& mean, const at::Tensor& rstd,
                       const at::Tensor& weight, const at::Tensor& weight_main, const at::Tensor& bias_main,
                       const at::Tensor& residual_gradient) {
  const int64_t rows = check_forward(x, weight, weight);
  check_like(gradient, x, "layer_norm: gradient");
  if (residual_gradient.defined()) check_like(residual_gradient, x, "layer_norm: residual_gradient");
  check_vector(mean, rows, at::kFloat, "layer_norm: mean");
  check_vector(rstd, rows, at::kFloat, "layer_norm: rstd");
  check_vector(weight_main, x.size(-1), at::kFloat, "layer_norm: weight_main");
  check_vector(bias_main, x.size(-1), at::kFloat, "layer_norm: bias_main");
  return rows;
}

LayerNormOutput fused_forward(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& sum,
                              const at::Tensor& weight, const at::Tensor& bias, double epsilon) {
  const int64_t rows = check_forward(x, weight, bias);
  const int64_t columns = x.size(-1);
  const at::IntArrayRef leading = x.sizes().slice(0, x.sizes().size() - 1);
  LayerNormOutput result{at::empty_like(x), at::empty(leading, x.options().dtype(at::kFloat)),
                         at::empty(leading, x.options().dtype(at::kFloat))};
  with_format(x.scalar_type(), [&](auto format) {
    using Format = decltype(format);
    const auto loop = RIDGELINE_PICK(layer_norm_forward_rows<Format>);
    const auto* added = stored<Format>(residual);
    auto* kept = stored<Format>(sum);
    at::parallel_for(0, rows, rows_per_task(columns), [&](int64_t begin, int64_t end) {
      const int64_t first = begin * columns;
      loop(stored<Format>(x) + first, added == nullptr ? nullptr : added + first,
           kept == nullptr ? nullptr : kept + first, stored<Format>(weight), stored<Format>(bias),
           stored<Format>(result.out) + first, floats(result.mean) + begin, floats(result.rstd) + begin, end - begin,
           columns, static_cast<float>(epsilon));
    });
  });
  return result;
}

}  // namespace

LayerNormOutput layer_norm_forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                                   double epsilon) {
  if (!x.is_cpu()) return plain::layer_norm_forward(x, weight, bias, epsilon);
  return fused_forward(x, {}, {}, weight, bias, epsilon);
}

LayerNormOutput layer_norm_add_forward(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& sum,
                                       const at::Tensor& weight, const at::Tensor& bias, double epsilon) {
  check_like(residual, x, "layer_norm: residual");
  check_like(sum, x, "layer_norm: sum");
  if (x.is_cpu()) return fused_forward(x, residual, sum, weight, bias, epsilon);
  at::Tensor written = sum;
  at::add_out(written, x, residual);
  return plain::layer_norm_forward(sum, weight, bias, epsilon);
}

at::Tensor layer_norm_recompute(const at::Tensor& x, const at::Tensor& mean, const at::Tensor& rstd,
                                const at::Tensor& weight, const at::Tensor& bias) {
  const int64_t rows = check_forward(x, weight, bias);
  check_vector(mean, rows, at::kFloat, "layer_norm: mean");
  check_vector(rstd, rows, at::kFloat, "layer_norm: rstd");
  if (!x.is_cpu()) return plain::layer_norm_recompute(x, mean, rstd, weight, bias);
  const int64_t columns = x.size(-1);
  at::Tensor out = at::empty_like(x);
  with_format(x.scalar_type(), [&](auto format) {
    using Format = decltype(format);
    const auto loop = RIDGELINE_PICK(layer_norm_apply_rows<Format>);
    at::parallel_for(0, rows, rows_per_task(columns), [&](int64_t begin, int64_t end) {
      loop(stored<Format>(x) + begin * columns, floats(mean) + begin, floats(rstd) + begin, stored<Format>(weight),
           stored<Format>(bias), stored<Format>(out) + begin * columns, end - begin, columns);
    });
  });
  return out;
}

at::Tensor layer_norm_backward(const at::Tensor& gradient, const at::Tensor& x, const at::Tensor& mean,
                               const at::Tensor& rstd, const at::Tensor& weight, const at::Tensor& weight_main,
                               const at::Tensor& bias_main, const at::Tensor& residual_gradient) {
  if (!x.is_cpu()) {
    return plain::layer_norm_backward(gradient, x, mean, rstd, weight, weight_main, bias_main, residual_gradient);
  }
  const int64_t rows = check_backward(gradient, x, mean, rstd, weight, weight_main, bias_main, residual_gradient);
  const int64_t columns = x.size(-1);
  const int64_t block_rows = rows_in_block(rows);
  const int64_t blocks = (rows + block_rows - 1) / block_rows;
  at::Tensor dx = at::empty_like(x);
  const at::Tensor sums = at::zeros({2, blocks, columns}, x.options().dtype(at::kFloat));
  float* weight_sums = floats(sums);
  float* bias_sums = weight_sums + blocks * columns;
  with_format(x.scalar_type(), [&](auto format) {
    using Format = decltype(format);
    const auto loop = RIDGELINE_PICK(layer_norm_backward_rows<Format>);
    const auto* added = stored<Format>(residual_gradient);
    at::parallel_for(0, blocks, rows_per_task(block_rows * columns), [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        const int64_t row = block * block_rows;
        const int64_t first = row * columns;
        loop(stored<Format>(gradient) + first, stored<Format>(x) + first, floats(mean) + row, floats(rstd) + row,
             stored<Format>(weight), added == nullptr ? nullptr : added + first, stored<Format>(dx) + first,
             weight_sums + block * columns, bias_sums + block * columns, std::min(block_rows, rows - row), columns);
      }
    });
  });
  const auto reduce = RIDGELINE_PICK(add_partial_sums);
  at::parallel_for(0, columns, rows_per_task(blocks), [&](int64_t begin, int64_t end) {
    reduce(floats(weight_main) + begin, weight_sums + begin, blocks, columns, end - begin);
    reduce(floats(bias_main) + begin, bias_sums + begin, blocks, columns, end - begin);
  });
  return dx;
}

LayerNormOutput plain::layer_norm_forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                                          double epsilon) {
  check_forward(x, weight, bias);
  auto [out, mean, rstd] = at::native_layer_norm(x, x.size(-1), weight, bias, epsilon);
  return {out, mean.squeeze(-1).to(at::kFloat), rstd.squeeze(-1).to(at::kFloat)};
}

at::Tensor plain::layer_norm_recompute(const at::Tensor& x, const at::Tensor& mean, const at::Tensor& rstd,
                                       const at::Tensor& weight, const at::Tensor& bias) {
  check_forward(x, weight, bias);
  const at::Tensor normal = x.to(at::kFloat).sub(mean.unsqueeze(-1)).mul_(rstd.unsqueeze(-1));
  return normal.mul_(weight).add_(bias).to(x.scalar_type());
}

at::Tensor plain::layer_norm_backward(const at::Tensor& gradient, const at::Tensor& x, const at::Tensor& mean,
                                      const at::Tensor& rstd, const at::Tensor& weight, const at::Tensor& weight_main,
                                      const at::Tensor& bias_main, const at::Tensor& residual_gradient) {
  check_backward(gradient, x, mean, rstd, weight, weight_main, bias_main, residual_gradient);
  // The CPU's own kernel wants the statistics in the dtype of x.
  const at::ScalarType dtype = x.is_cpu() ? x.scalar_type() : at::kFloat;
  auto [dx, dweight, dbias] =
      at::native_layer_norm_backward(gradient, x, x.size(-1), mean.unsqueeze(-1).to(dtype),
                                     rstd.unsqueeze(-1).to(dtype), weight, weight, {true, true, true});
  plain::add_into_main_gradient(weight_main, dweight);
  plain::add_into_main_gradient(bias_main, dbias);
  return residual_gradient.defined() ? dx.add_(residual_gradient) : dx;
}

}  // namespace ridgeline::nn
