#include "nn/kernels/accumulate.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <vector>

#include "nn/kernels/tensor_access.h"

#define RIDGELINE_TARGET_FILE "nn/kernels/accumulate_loops.inl"
#include "core/for_each_target.h"

namespace ridgeline::nn {
namespace {

// Columns that one task sums: whole cache lines in every format.
constexpr int64_t kColumnBlock = 128;

void check_bias(const at::Tensor& main, const at::Tensor& gradient) {
  check_dense(gradient, "bias_gradient: gradient");
  RIDGELINE_ASSERT(gradient.dim() >= 1);
  check_vector(main, gradient.size(-1), at::kFloat, "bias_gradient: main");
}

void check_add(const at::Tensor& main, const at::Tensor& gradient) {
  check_dense(gradient, "add_into_main_gradient: gradient");
  check_vector(main, gradient.numel(), at::kFloat, "add_into_main_gradient: main");
}

}  // namespace

void bias_gradient(const at::Tensor& main, const at::Tensor& gradient) {
  check_bias(main, gradient);
  if (!gradient.is_cpu()) return plain::bias_gradient(main, gradient);
  if (gradient.numel() == 0) return;
  const int64_t columns = gradient.size(-1);
  const int64_t rows = gradient.numel() / columns;
  const int64_t blocks = (columns + kColumnBlock - 1) / kColumnBlock;
  with_format(gradient.scalar_type(), [&](auto format) {
    using Format = decltype(format);
    const auto loop = RIDGELINE_PICK(add_columns<Format>);
    at::parallel_for(0, blocks, rows_per_task(rows * kColumnBlock), [&](int64_t begin, int64_t end) {
      const int64_t first = begin * kColumnBlock;
      const int64_t last = std::min(columns, end * kColumnBlock);
      std::vector<float> sums(static_cast<size_t>(last - first), 0.0f);
      loop(sums.data(), stored<Format>(gradient) + first, rows, columns, last - first);
      RIDGELINE_PICK(add_vector<Float32>)(floats(main) + first, sums.data(), last - first);
    });
  });
}

void add_into_main_gradient(const at::Tensor& main, const at::Tensor& gradient) {
  check_add(main, gradient);
  if (!gradient.is_cpu()) return plain::add_into_main_gradient(main, gradient);
  with_format(gradient.scalar_type(), [&](auto format) {
    using Format = decltype(format);
    const auto loop = RIDGELINE_PICK(add_vector<Format>);
    at::parallel_for(0, gradient.numel(), kGrainElements, [&](int64_t begin, int64_t end) {
      loop(floats(main) + begin, stored<Format>(gradient) + begin, end - begin);
    });
  });
}

void plain::bias_gradient(const at::Tensor& main, const at::Tensor& gradient) {
  check_bias(main, gradient);
  if (gradient.numel() == 0) return;
  main.view({-1}).add_(gradient.view({-1, gradient.size(-1)}).sum(at::IntArrayRef{0}, false, at::kFloat));
}

void plain::add_into_main_gradient(const at::Tensor& main, const at::Tensor& gradient) {
  check_add(main, gradient);
  main.view({-1}).add_(gradient.view({-1}));
}

}  // namespace ridgeline::nn
