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

// main[c] += sum of gradient[r * stride + c], for c < columns, `Vectors` vectors at a time. Every 128 rows the sums go
// to a second set of accumulators, so that the rounding error grows with the square root of the rows' number.
template <typename Format, int Vectors>
RIDGELINE_INLINE void add_column_block(float* main, const typename Format::Stored* gradient, int64_t rows,
                                       int64_t stride, int64_t columns) {
  Floats total[Vectors] = {};
  for (int64_t first = 0; first < rows; first += 128) {
    const int64_t last = first + 128 < rows ? first + 128 : rows;
    Floats sum[Vectors] = {};
    for (int64_t row = first; row < last; ++row) {
      for (int v = 0; v < Vectors; ++v)
        sum[v] += load<Format>(gradient + row * stride + v * kLanes, columns - v * kLanes);
    }
    for (int v = 0; v < Vectors; ++v) total[v] += sum[v];
  }
  for (int v = 0; v < Vectors; ++v) {
    const int64_t left = columns - v * kLanes;
    store<Float32>(main + v * kLanes, load<Float32>(main + v * kLanes, left) + total[v], left);
  }
}

template <typename Format>
void add_columns(float* main, const typename Format::Stored* gradient, int64_t rows, int64_t stride, int64_t columns) {
  int64_t column = 0;
  for (; column + 8 * kLanes <= columns; column += 8 * kLanes) {
    add_column_block<Format, 8>(main + column, gradient + column, rows, stride, 8 * kLanes);
  }
  for (; column < columns; column += kLanes) {
    add_column_block<Format, 1>(main + column, gradient + column, rows, stride, columns - column);
  }
}

}  // namespace
}  // namespace ridgeline::RIDGELINE_TARGET
