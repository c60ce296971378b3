// Sum of squares in double.

namespace ridgeline::RIDGELINE_TARGET {
namespace {

double square_sum(const float* values, int64_t count) {
  WideDoubles sum[2] = {};
  int64_t i = 0;
  for (; i + 2 * kLanes <= count; i += 2 * kLanes) {
    for (int v = 0; v < 2; ++v) {
      const WideDoubles wide = __builtin_convertvector(load<Float32>(values + i + v * kLanes), WideDoubles);
      sum[v] += wide * wide;
    }
  }
  for (; i < count; i += kLanes) {
    const WideDoubles wide = __builtin_convertvector(load<Float32>(values + i, count - i), WideDoubles);
    sum[0] += wide * wide;
  }
  double total = 0.0;
  for (int64_t lane = 0; lane < kLanes; ++lane) total += sum[0][lane] + sum[1][lane];
  return total;
}

}  // namespace
}  // namespace ridgeline::RIDGELINE_TARGET
