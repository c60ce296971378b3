// RMSNorm of rows. A row is read several times, but from the cache: memory sees one pass.
#include "nn/kernels/row_sums.inl"

namespace ridgeline::RIDGELINE_TARGET {
namespace {

template <typename Format>
RIDGELINE_INLINE void rms_apply_row(const typename Format::Stored* x, float rstd, const typename Format::Stored* weight,
                                    typename Format::Stored* out, int64_t columns) {
  for (int64_t i = 0; i < columns; i += kLanes) {
    const int64_t left = columns - i;
    store<Format>(out + i, load<Format>(x + i, left) * rstd * load<Format>(weight + i, left), left);
  }
}

template <typename Format>
void rms_norm_apply_rows(const typename Format::Stored* x, const float* rstds, const typename Format::Stored* weight,
                         typename Format::Stored* out, int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; ++row) {
    rms_apply_row<Format>(x + row * columns, rstds[row], weight, out + row * columns, columns);
  }
}

template <typename Format>
void rms_norm_forward_rows(const typename Format::Stored* x, const typename Format::Stored* weight,
                           typename Format::Stored* out, float* rstds, int64_t rows, int64_t columns, float epsilon) {
  for (int64_t row = 0; row < rows; ++row, x += columns, out += columns) {
    const float square = sum_row(columns,
                                 [&](int64_t i, int64_t left) {
                                   const Floats value = load<Format>(x + i, left);
                                   return value * value;
                                 }) /
                         static_cast<float>(columns);
    const float rstd = 1.0f / __builtin_sqrtf(square + epsilon);
    rms_apply_row<Format>(x, rstd, weight, out, columns);
    rstds[row] = rstd;
  }
}

// With n = x rstd and g = gradient * weight: dx = rstd (g - n avg(g n)). Adds gradient * n into `weight_sum`.
// `residual` may be null.
template <typename Format>
void rms_norm_backward_rows(const typename Format::Stored* gradient, const typename Format::Stored* x,
                            const float* rstds, const typename Format::Stored* weight,
                            const typename Format::Stored* residual, typename Format::Stored* dx, float* weight_sum,
                            int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; ++row, gradient += columns, x += columns, dx += columns) {
    const float rstd = rstds[row];
    Floats sum_gn = {};
    for (int64_t i = 0; i < columns; i += kLanes) {
      const int64_t left = columns - i;
      const Floats dy = load<Format>(gradient + i, left);
      const Floats n = load<Format>(x + i, left) * rstd;
      store<Float32>(weight_sum + i, load<Float32>(weight_sum + i, left) + dy * n, left);
      sum_gn += dy * load<Format>(weight + i, left) * n;
    }
    const float average_gn = sum_lanes(sum_gn) / static_cast<float>(columns);
    for (int64_t i = 0; i < columns; i += kLanes) {
      const int64_t left = columns - i;
      const Floats n = load<Format>(x + i, left) * rstd;
      Floats result = (load<Format>(gradient + i, left) * load<Format>(weight + i, left) - n * average_gn) * rstd;
      if (residual != nullptr) result += load<Format>(residual + row * columns + i, left);
      store<Format>(dx + i, result, left);
    }
  }
}

}  // namespace
}  // namespace ridgeline::RIDGELINE_TARGET
