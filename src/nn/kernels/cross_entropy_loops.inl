// Maximum, sum of exponentials and gradient of one row of logits.

namespace ridgeline::RIDGELINE_TARGET {
namespace {

template <typename Format>
float logits_max(const typename Format::Stored* logits, int64_t columns) {
  const Floats lowest = splat(-__builtin_inff());
  Floats maximum[4] = {lowest, lowest, lowest, lowest};
  int64_t i = 0;
  for (; i + 4 * kLanes <= columns; i += 4 * kLanes) {
    for (int v = 0; v < 4; ++v) maximum[v] = larger(load<Format>(logits + i + v * kLanes), maximum[v]);
  }
  for (; i < columns; i += kLanes) {
    maximum[0] = larger(keep_first(load<Format>(logits + i, columns - i), columns - i, -__builtin_inff()), maximum[0]);
  }
  return max_lanes(larger(larger(maximum[0], maximum[1]), larger(maximum[2], maximum[3])));
}

template <typename Format>
float logits_sum_exp(const typename Format::Stored* logits, int64_t columns, float maximum) {
  Floats sum[2] = {};
  int64_t i = 0;
  for (; i + 2 * kLanes <= columns; i += 2 * kLanes) {
    sum[0] += exponential(load<Format>(logits + i) - maximum);
    sum[1] += exponential(load<Format>(logits + i + kLanes) - maximum);
  }
  for (; i < columns; i += kLanes) {
    const int64_t left = columns - i;
    sum[0] += keep_first(exponential(load<Format>(logits + i, left) - maximum), left, 0.0f);
  }
  return sum_lanes(sum[0] + sum[1]);
}

template <typename Format>
float logit_at(const typename Format::Stored* logits, int64_t column) {
  return load<Format>(logits + column, 1)[0];
}

// `target` is -1 where it is not in these columns. The target's own gradient is computed apart, in fp32, because
// softmax - 1 would lose bits if softmax were stored first.
template <typename Format>
void logits_gradient(typename Format::Stored* logits, int64_t columns, float maximum, float sum_exp, int64_t target,
                     float scale) {
  const float factor = scale / sum_exp;
  Floats at_target = {};
  if (target >= 0) at_target = exponential(load<Format>(logits + target, 1) - maximum) * factor - scale;
  for (int64_t i = 0; i < columns; i += kLanes) {
    const int64_t left = columns - i;
    store<Format>(logits + i, exponential(load<Format>(logits + i, left) - maximum) * factor, left);
  }
  if (target >= 0) store<Format>(logits + target, at_target, 1);
}

}  // namespace
}  // namespace ridgeline::RIDGELINE_TARGET
