#include "nn/kernels/rms_norm.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "nn/kernels/accumulate.h"
#include "nn/kernels/tensor_access.h"

#define RIDGELINE_TARGET_FILE "nn/kernels/rms_norm_loops.inl"
#include "core/for_each_target.h"

namespace ridgeline::nn {
namespace {

int64_t check_forward(const at::Tensor& x, const at::Tensor& weight) {
  check_dense(x, "rms_norm: x");
  RIDGELINE_ASSERT(x.dim() >= 1 && x.size(-1) > 0);
  check_vector(weight, x.size(-1), x.scalar_type(), "rms_norm: weight");
  return x.numel() / x.size(-1);
}

int64_t check_backward(const at::Tensor& gradient, const at::Tensor& x, const at::Tensor& rstd,
                       const at::Tensor& weight, const at::Tensor& weight_main, const at::Tensor& residual_gradient) {
  const int64_t rows = check_forward(x, weight);
  check_like(gradient, x, "rms_norm: gradient");
  if (residual_gradient.defined()) check_like(residual_gradient, x, "rms_norm: residual_gradient");
  check_vector(rstd, rows, at::kFloat, "rms_norm: rstd");
  check_vector(weight_main, x.size(-1), at::kFloat, "rms_norm: weight_main");
  return rows;
}

}  // namespace

RmsNormOutput rms_norm_forward(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  if (!x.is_cpu()) return plain::rms_norm_forward(x, weight, epsilon);
  const int64_t rows = check_forward(x, weight);
  const int64_t columns = x.size(-1);
  RmsNormOutput result{at::empty_like(x), at::empty(x.sizes().slice(0, x.sizes().size() - 1),
                                                    x.options().dtype(at::kFloat))};
  with_format(x.scalar_type(), [&](auto format) {
    using Format = decltype(format);
    const auto loop = RIDGELINE_PICK(rms_norm_forward_rows<Format>);
    at::parallel_for(0, rows, rows_per_task(columns), [&](int64_t begin, int64_t end) {
      const int64_t first = begin * columns;
      loop(stored<Format>(x) + first, stored<Format>(weight), stored<Format>(result.out) + first,
           floats(result.rstd) + begin, end - begin, columns, static_cast<float>(epsilon));
    });
  });
  return result;
}

at::Tensor rms_norm_recompute(const at::Tensor& x, const at::Tensor& rstd, const at::Tensor& weight) {
  if (!x.is_cpu()) return plain::rms_norm_recompute(x, rstd, weight);
  const int64_t rows = check_forward(x, weight);
  const int64_t columns = x.size(-1);
  check_vector(rstd, rows, at::kFloat, "rms_norm: rstd");
  at::Tensor out = at::empty_like(x);
  with_format(x.scalar_type(), [&](auto format) {
    using Format = decltype(format);
    const auto loop = RIDGELINE_PICK(rms_norm_apply_rows<Format>);
    at::parallel_for(0, rows, rows_per_task(columns), [&](int64_t begin, int64_t end) {
      const int64_t first = begin * columns;
      loop(stored<Format>(x) + first, floats(rstd) + begin, stored<Format>(weight), stored<Format>(out) + first,
           end - begin, columns);
    });
  });
  return out;
}

at::Tensor rms_norm_backward(const at::Tensor& gradient, const at::Tensor& x, const at::Tensor& rstd,
                             const at::Tensor& weight, const at::Tensor& weight_main,
                             const at::Tensor& residual_gradient) {
  if (!x.is_cpu()) return plain::rms_norm_backward(gradient, x, rstd, weight, weight_main, residual_gradient);
  const int64_t rows = check_backward(gradient, x, rstd, weight, weight_main, residual_gradient);
  const int64_t columns = x.size(-1);
  const int64_t block_rows = rows_in_block(rows), blocks = (rows + block_rows - 1) / block_rows;
  at::Tensor dx = at::empty_like(x);
  const at::Tensor sums = at::zeros({blocks, columns}, x.options().dtype(at::kFloat));
  with_format(x.scalar_type(), [&](auto format) {
    using Format = decltype(format);
    const auto loop = RIDGELINE_PICK(rms_norm_backward_rows<Format>);
    const auto* added = stored<Format>(residual_gradient);
    at::parallel_for(0, blocks, rows_per_task(block_rows * columns), [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        const int64_t row = block * block_rows;
        const int64_t first = row * columns;
        loop(stored<Format>(gradient) + first, stored<Format>(x) + first, floats(rstd) + row, stored<Format>(weight),
             added == nullptr ? nullptr : added + first, stored<Format>(dx) + first, floats(sums) + block * columns,
             std::min(block_rows, rows - row), columns);
      }
    });
  });
  const auto reduce = RIDGELINE_PICK(add_partial_sums);
  at::parallel_for(0, columns, rows_per_task(blocks), [&](int64_t begin, int64_t end) {
    reduce(floats(weight_main) + begin, floats(sums) + begin, blocks, columns, end - begin);
  });
  return dx;
}

RmsNormOutput plain::rms_norm_forward(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  check_forward(x, weight);
  const at::Tensor rstd = x.to(at::kFloat).square().mean(-1).add_(epsilon).rsqrt_();
  return {rms_norm_recompute(x, rstd, weight), rstd};
}

at::Tensor plain::rms_norm_recompute(const at::Tensor& x, const at::Tensor& rstd, const at::Tensor& weight) {
  check_forward(x, weight);
  return x.to(at::kFloat).mul(rstd.unsqueeze(-1)).mul_(weight).to(x.scalar_type());
}

at::Tensor plain::rms_norm_backward(const at::Tensor& gradient, const at::Tensor& x, const at::Tensor& rstd,
                                    const at::Tensor& weight, const at::Tensor& weight_main,
                                    const at::Tensor& residual_gradient) {
  check_backward(gradient, x, rstd, weight, weight_main, residual_gradient);
  const at::Tensor scale = rstd.unsqueeze(-1);
  const at::Tensor normal = x.to(at::kFloat).mul(scale);
  const at::Tensor dy = gradient.to(at::kFloat);
  plain::bias_gradient(weight_main, dy * normal);
  const at::Tensor g = dy * weight;
  at::Tensor dx = g.sub(normal * (g * normal).mean(-1, /*keepdim=*/true)).mul_(scale);
  if (residual_gradient.defined()) dx.add_(residual_gradient);
  return dx.to(x.scalar_type());
}

}  // namespace ridgeline::nn
