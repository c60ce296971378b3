#include "data/permutation.h"

#include <cmath>

#include "core/error.h"
#include "core/split_mix.h"

namespace ridgeline::data {
namespace {

// A number below `bound` from 64 random bits, by multiplication instead of division.
uint64_t reduce(uint64_t bits, uint64_t bound) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>((static_cast<Wide>(bits) * bound) >> 64);
}

uint64_t add_modulo(uint64_t left, uint64_t right, uint64_t modulus) {
  const auto sum = left + right;  // both are below 2^32
  return sum >= modulus ? sum - modulus : sum;
}

uint64_t ceiling_root(uint64_t n) {
  // The floating-point root is off by one at most; the exact one is found from there.
  auto root = static_cast<uint64_t>(std::sqrt(static_cast<double>(n)));
  while (root * root >= n && root > 1) --root;
  while (root * root < n) ++root;
  return root;
}

}  // namespace

Permutation::Permutation(int64_t n, uint64_t seed, uint64_t stream) : n_(static_cast<uint64_t>(n)) {
  RIDGELINE_ASSERT(n >= 1);
  rows_ = ceiling_root(n_);
  columns_ = (n_ + rows_ - 1) / rows_;
  uint64_t state = split_mix(seed + kGoldenGamma) ^ split_mix(split_mix(stream + 2 * kGoldenGamma));
  for (auto& key : keys_) {
    state += kGoldenGamma;
    key = split_mix(state);
  }
}

uint64_t Permutation::step(uint64_t value) const {
  uint64_t high = value / columns_;
  uint64_t low = value % columns_;
  for (int round = 0; round < kRounds; round += 2) {
    high = add_modulo(high, reduce(split_mix(low * kGoldenGamma + keys_[round]), rows_), rows_);
    low = add_modulo(low, reduce(split_mix(high * kGoldenGamma + keys_[round + 1]), columns_), columns_);
  }
  return high * columns_ + low;
}

int64_t Permutation::operator()(int64_t index) const {
  RIDGELINE_ASSERT(index >= 0 && static_cast<uint64_t>(index) < n_);
  auto value = static_cast<uint64_t>(index);
  // The grid is permuted, and the cycle of a value below n returns to [0, n): the walk ends.
  do {
    value = step(value);
  } while (value >= n_);
  return static_cast<int64_t>(value);
}

}  // namespace ridgeline::data
