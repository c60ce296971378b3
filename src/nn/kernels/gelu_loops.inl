// GELU and its derivative. With s = 1 / (1 + e^(-2 u)), u = sqrt(2 / pi) (z + 0.044715 z^3), (1 + tanh u) / 2 is s, so
// gelu = z s and gelu' = s + 2 z s (1 - s) u'. 1 - s is formed as e^(-2 u) s, which has no cancellation.

namespace ridgeline::RIDGELINE_TARGET {
namespace {

constexpr float kGeluSlope = 0.7978845608f;  // sqrt(2 / pi)
constexpr float kGeluCubic = 0.044715f;

// e^(-2 u)
RIDGELINE_INLINE Floats gelu_exponential(const Floats& z) {
  return exponential(z * (z * z * (-2.0f * kGeluSlope * kGeluCubic) - 2.0f * kGeluSlope));
}

// `bias` may be null: then the whole of x may be one row.
template <typename Format>
void gelu_forward_rows(const typename Format::Stored* x, const typename Format::Stored* bias,
                       typename Format::Stored* out, int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; ++row, x += columns, out += columns) {
    for (int64_t i = 0; i < columns; i += kLanes) {
      Floats z = load<Format>(x + i, columns - i);
      if (bias != nullptr) z += load<Format>(bias + i, columns - i);
      store<Format>(out + i, z / (1.0f + gelu_exponential(z)), columns - i);
    }
  }
}

template <typename Format>
void gelu_backward_rows(typename Format::Stored* gradient, const typename Format::Stored* x,
                        const typename Format::Stored* bias, int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; ++row, x += columns, gradient += columns) {
    for (int64_t i = 0; i < columns; i += kLanes) {
      Floats z = load<Format>(x + i, columns - i);
      if (bias != nullptr) z += load<Format>(bias + i, columns - i);
      const Floats e = gelu_exponential(z);
      const Floats s = 1.0f / (1.0f + e);
      const Floats slope = z * z * (6.0f * kGeluSlope * kGeluCubic) + 2.0f * kGeluSlope;  // 2 u'
      const Floats derivative = s + z * s * (e * s) * slope;
      store<Format>(gradient + i, load<Format>(gradient + i, columns - i) * derivative, columns - i);
    }
  }
}

}  // namespace
}  // namespace ridgeline::RIDGELINE_TARGET
