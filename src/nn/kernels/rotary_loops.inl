// Rotation of the heads of one row after the other.

namespace ridgeline::RIDGELINE_TARGET {
namespace {

// `sign` is 1 or -1: that of the angle.
template <typename Format>
void rotate_rows(typename Format::Stored* x, int64_t row_stride, const float* cosines, const float* sines,
                 const int64_t* positions, int64_t rows, int64_t heads, int64_t half, float sign) {
  for (int64_t row = 0; row < rows; ++row) {
    const float* row_cosines = cosines + positions[row] * half;
    const float* row_sines = sines + positions[row] * half;
    for (int64_t head = 0; head < heads; ++head) {
      typename Format::Stored* first = x + row * row_stride + head * 2 * half;
      typename Format::Stored* second = first + half;
      for (int64_t i = 0; i < half; i += kLanes) {
        const int64_t left = half - i;
        const Floats a = load<Format>(first + i, left), b = load<Format>(second + i, left);
        const Floats c = load<Float32>(row_cosines + i, left), s = load<Float32>(row_sines + i, left) * sign;
        store<Format>(first + i, a * c - b * s, left);
        store<Format>(second + i, b * c + a * s, left);
      }
    }
  }
}

}  // namespace
}  // namespace ridgeline::RIDGELINE_TARGET
