// Permutation: a keyed shuffle of [0, n), computed, not stored.
//
//   Permutation order(samples, seed, epoch);
//   order(7)   // the 8th sample of that epoch's order
//
// Every (seed, stream) is one of the orders of [0, n); the state is four numbers, a value costs the same wherever it is
// asked for, and any rank can ask for any of them. So a data order needs no index file, no agreement between ranks and
// no saved state. The values are part of what makes a resumed run equal to an unbroken one: they may never change (a
// test holds some of them).
//
// Method: an alternating Feistel network (Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002) over
// pairs (high, low) of a grid a x b that is the tightest near-square one around n; what falls outside [0, n) walks on
// along its cycle. The grid exceeds n by less than a = ceil(sqrt(n)), so walks are rare. Rounds are keyed by the
// SplitMix64 mixing function (Steele, Lea and Flood, OOPSLA 2014).
#pragma once

#include <array>
#include <cstdint>

namespace ridgeline::data {

class Permutation {
 public:
  // n >= 1.
  Permutation(int64_t n, uint64_t seed, uint64_t stream = 0);

  // index in [0, n).
  int64_t operator()(int64_t index) const;
  int64_t size() const { return static_cast<int64_t>(n_); }

 private:
  static constexpr int kRounds = 10;
  uint64_t step(uint64_t value) const;

  uint64_t n_;
  uint64_t rows_;     // a
  uint64_t columns_;  // b
  std::array<uint64_t, kRounds> keys_;
};

}  // namespace ridgeline::data
