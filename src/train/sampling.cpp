#include "train/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/error.h"
#include "core/random.h"

namespace ridgeline::train {
namespace {

// In (0, 1), from 32 random bits.
double uniform(uint64_t seed, int64_t sample, int64_t position) {
  const auto number = static_cast<uint64_t>(position);
  const PhiloxBlock block = philox4x32({static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32),
                                        static_cast<uint32_t>(sample), 0},
                                       random_key(seed, "generate"));
  return (block[0] + 0.5) * 0x1p-32;
}

// Tokens from the likeliest down, cut to the `count` first.
std::vector<int64_t> likeliest(const float* logits, int64_t vocabulary, int64_t count) {
  std::vector<int64_t> order(vocabulary);
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](int64_t a, int64_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  order.resize(count);
  return order;
}

}  // namespace

int64_t sample_token(const at::Tensor& logits, const Sampling& sampling, int64_t sample, int64_t position) {
  const at::Tensor host = logits.to(at::kCPU, at::kFloat).contiguous();
  const float* values = host.data_ptr<float>();
  const int64_t vocabulary = host.numel();
  if (std::any_of(values, values + vocabulary, [](float value) { return !std::isfinite(value); })) {
    throw Failure("the model's logits are not finite numbers; its weights are damaged, or precision.compute is too narrow: "
                  "try --set precision.compute=fp32");
  }
  const bool greedy = sampling.temperature <= 0;
  const int64_t count = greedy ? 1 : sampling.top_k > 0 ? std::min(sampling.top_k, vocabulary) : vocabulary;
  const std::vector<int64_t> order = likeliest(values, vocabulary, count);
  if (greedy) return order[0];

  // Probabilities up to a common factor, the likeliest token's being 1.
  std::vector<double> weights(order.size());
  std::transform(order.begin(), order.end(), weights.begin(), [&](int64_t token) {
    return std::exp((static_cast<double>(values[token]) - values[order[0]]) / sampling.temperature);
  });
  const double whole = std::accumulate(weights.begin(), weights.end(), 0.0);
  size_t kept = 0;
  double kept_weight = 0;
  while (kept < weights.size() && (kept == 0 || kept_weight < sampling.top_p * whole)) kept_weight += weights[kept++];

  double rest = uniform(sampling.seed, sample, position) * kept_weight;
  for (size_t index = 0; index + 1 < kept; ++index) {
    rest -= weights[index];
    if (rest < 0) return order[index];
  }
  return order[kept - 1];
}

}  // namespace ridgeline::train
