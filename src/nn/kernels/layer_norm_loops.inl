// LayerNorm of rows. A row is read several times, but from the cache: memory sees one pass.
#include "nn/kernels/row_sums.inl"

namespace ridgeline::RIDGELINE_TARGET {
namespace {

template <typename Format>
RIDGELINE_INLINE void apply_row(const typename Format::Stored* x, float mean, float rstd,
                                const typename Format::Stored* weight, const typename Format::Stored* bias,
                                typename Format::Stored* out, int64_t columns) {
  for (int64_t i = 0; i < columns; i += kLanes) {
    const int64_t left = columns - i;
    const Floats normal = (load<Format>(x + i, left) - mean) * rstd;
    store<Format>(out + i, normal * load<Format>(weight + i, left) + load<Format>(bias + i, left), left);
  }
}

template <typename Format>
void layer_norm_apply_rows(const typename Format::Stored* x, const float* means, const float* rstds,
                           const typename Format::Stored* weight, const typename Format::Stored* bias,
                           typename Format::Stored* out, int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; ++row) {
    apply_row<Format>(x + row * columns, means[row], rstds[row], weight, bias, out + row * columns, columns);
  }
}

// `residual` may be null; otherwise x + residual goes to `sum` and takes the place of x.
template <typename Format>
void layer_norm_forward_rows(const typename Format::Stored* x, const typename Format::Stored* residual,
                             typename Format::Stored* sum, const typename Format::Stored* weight,
                             const typename Format::Stored* bias, typename Format::Stored* out, float* means,
                             float* rstds, int64_t rows, int64_t columns, float epsilon) {
  for (int64_t row = 0; row < rows; ++row) {
    const typename Format::Stored* from = x + row * columns;
    if (residual != nullptr) {
      for (int64_t i = 0; i < columns; i += kLanes) {
        const Floats value =
            load<Format>(from + i, columns - i) + load<Format>(residual + row * columns + i, columns - i);
        store<Format>(sum + row * columns + i, value, columns - i);
      }
      from = sum + row * columns;
    }
    const float mean = sum_row(columns, [&](int64_t i, int64_t left) { return load<Format>(from + i, left); }) /
                       static_cast<float>(columns);
    const float variance = sum_row(columns,
                                   [&](int64_t i, int64_t left) {
                                     const Floats centred = keep_first(load<Format>(from + i, left) - mean, left, 0.0f);
                                     return centred * centred;
                                   }) /
                           static_cast<float>(columns);
    const float rstd = 1.0f / __builtin_sqrtf(variance + epsilon);
    apply_row<Format>(from, mean, rstd, weight, bias, out + row * columns, columns);
    means[row] = mean;
    rstds[row] = rstd;
  }
}

// With n = (x - mean) rstd and g = gradient * weight: dx = rstd (g - avg(g) - n avg(g n)). Adds gradient * n into
// `weight_sum` and gradient into `bias_sum`. `residual` may be null.
template <typename Format>
void layer_norm_backward_rows(const typename Format::Stored* gradient, const typename Format::Stored* x,
                              const float* means, const float* rstds, const typename Format::Stored* weight,
                              const typename Format::Stored* residual, typename Format::Stored* dx, float* weight_sum,
                              float* bias_sum, int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; ++row, gradient += columns, x += columns, dx += columns) {
    const float mean = means[row];
    const float rstd = rstds[row];
    Floats sum_g = {};
    Floats sum_gn = {};
    for (int64_t i = 0; i < columns; i += kLanes) {
      const int64_t left = columns - i;
      const Floats dy = load<Format>(gradient + i, left);
      const Floats n = (load<Format>(x + i, left) - mean) * rstd;
      const Floats g = dy * load<Format>(weight + i, left);
      store<Float32>(weight_sum + i, load<Float32>(weight_sum + i, left) + dy * n, left);
      store<Float32>(bias_sum + i, load<Float32>(bias_sum + i, left) + dy, left);
      sum_g += g;
      sum_gn += g * n;  // lanes past the end have g = 0
    }
    const float average_g = sum_lanes(sum_g) / static_cast<float>(columns);
    const float average_gn = sum_lanes(sum_gn) / static_cast<float>(columns);
    for (int64_t i = 0; i < columns; i += kLanes) {
      const int64_t left = columns - i;
      const Floats n = (load<Format>(x + i, left) - mean) * rstd;
      const Floats g = load<Format>(gradient + i, left) * load<Format>(weight + i, left);
      Floats result = (g - average_g - n * average_gn) * rstd;
      if (residual != nullptr) result += load<Format>(residual + row * columns + i, left);
      store<Format>(dx + i, result, left);
    }
  }
}

}  // namespace
}  // namespace ridgeline::RIDGELINE_TARGET
