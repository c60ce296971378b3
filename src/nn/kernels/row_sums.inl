// Sums over a row, and of the partial sums that blocks of rows leave: what the norms share.

namespace ridgeline::RIDGELINE_TARGET {
namespace {

// Sum over a row of term(i, left), in four accumulators so that additions do not wait for each other.
template <typename Term>
RIDGELINE_INLINE float sum_row(int64_t columns, Term term) {
  Floats sum[4] = {};
  int64_t i = 0;
  for (; i + 4 * kLanes <= columns; i += 4 * kLanes) {
    for (int v = 0; v < 4; ++v) sum[v] += term(i + v * kLanes, kLanes);
  }
  for (; i < columns; i += kLanes) sum[0] += term(i, columns - i);
  return sum_lanes((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

// main[c] += sum over blocks of partial[b * stride + c], in the order of blocks.
void add_partial_sums(float* main, const float* partial, int64_t blocks, int64_t stride, int64_t columns) {
  for (int64_t i = 0; i < columns; i += kLanes) {
    Floats sum = {};
    for (int64_t block = 0; block < blocks; ++block) sum += load<Float32>(partial + block * stride + i, columns - i);
    store<Float32>(main + i, load<Float32>(main + i, columns - i) + sum, columns - i);
  }
}

}  // namespace
}  // namespace ridgeline::RIDGELINE_TARGET
