// Sums of columns, and sums of vectors.

namespace ridgeline::RIDGELINE_TARGET {
namespace {

template <typename Format>
void add_vector(float* main, const typename Format::Stored* gradient, int64_t count) {
  for (int64_t i = 0; i < count; i += kLanes) {
    const Floats sum = load<Float32>(main + i, count - i) + load<Format>(gradient + i, count - i);
    store<Float32>(main + i, sum, count - i);
  }
}

// sums[c] += sum of gradient[r * stride + c] over a few rows, for c < columns, in `Vectors` vectors.
template <typename Format, int Vectors>
RIDGELINE_INLINE void add_block(float* sums, const typename Format::Stored* gradient, int64_t rows, int64_t stride,
                                int64_t columns) {
  Floats sum[Vectors] = {};
  for (int64_t row = 0; row < rows; ++row) {
    const typename Format::Stored* from = gradient + row * stride;
    for (int v = 0; v < Vectors; ++v) sum[v] += load<Format>(from + v * kLanes, columns - v * kLanes);
  }
  for (int v = 0; v < Vectors; ++v) {
    const int64_t left = columns - v * kLanes;
    store<Float32>(sums + v * kLanes, load<Float32>(sums + v * kLanes, left) + sum[v], left);
  }
}

// sums[c] += sum of gradient[r * stride + c] over all rows. Goes through 32 rows at a time: so few pages are in use at
// once that their translations stay cached, and rounding errors grow with the number of blocks instead of rows.
template <typename Format>
void add_columns(float* sums, const typename Format::Stored* gradient, int64_t rows, int64_t stride, int64_t columns) {
  for (int64_t row = 0; row < rows; row += 32, gradient += 32 * stride) {
    const int64_t count = rows - row < 32 ? rows - row : 32;
    int64_t column = 0;
    for (; column + 8 * kLanes <= columns; column += 8 * kLanes) {
      add_block<Format, 8>(sums + column, gradient + column, count, stride, 8 * kLanes);
    }
    for (; column < columns; column += kLanes) {
      add_block<Format, 1>(sums + column, gradient + column, count, stride, columns - column);
    }
  }
}

}  // namespace
}  // namespace ridgeline::RIDGELINE_TARGET
