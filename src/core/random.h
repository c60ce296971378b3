// Random numbers as functions of a key and a counter. No state is kept, so nothing random needs saving, and neither the
// layout of ranks, nor the order of calls, nor a restart changes a value.
//
// The generator is Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
//
// Normal values. Elements come in groups of 32: element 32 g + 8 k + j (k < 4, j < 8) uses word k of the block with
// counter (8 g + j as 64 bits, 0, 0). A word w stands for the uniform (w + 1/2) / 2^32; words 0 and 1 make elements k =
// 0, 1 and words 2 and 3 make k = 2, 3 by Box-Muller in double precision with basic operations only, so the values have
// the same bits on every machine. The largest magnitude is 6.76 standard deviations.
//
// Dropout. One 16-bit field for each (sample, position, channel): channel 64 g + 8 t + j (t < 8, j < 8) uses half t % 2
// (0: low) of word t / 2 of the block with counter (8 g + j, position, sample low, sample high) under
// dropout_key(seed, step, site). An element is dropped if its field is below round(65536 p).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace ridgeline {

using PhiloxBlock = std::array<uint32_t, 4>;

// The generator itself, for one counter.
PhiloxBlock philox4x32(PhiloxBlock counter, uint64_t key);

// Key of a named stream. Part of the format of runs: must not change.
uint64_t random_key(uint64_t seed, std::string_view name);

// values[i] = std * N(0, 1) of element first_element + i of the stream `key`.
void fill_normal(std::span<float> values, uint64_t key, uint64_t first_element, double std);

// The piece of a global tensor of `shape` that begins at `offset` and extends over `extent`, row-major in `values`: an
// element's number in the stream is its row-major index in the global tensor. One thread; to use several, cut the piece
// along its first dim.
void fill_normal_box(std::span<float> values, uint64_t key, std::span<const int64_t> shape,
                     std::span<const int64_t> offset, std::span<const int64_t> extent, double std);

// Key of the dropout decisions of one place in the model (`site`, below 2^24) at one step (below 2^40).
uint64_t dropout_key(uint64_t seed, int64_t step, int64_t site);

// How many of the 65536 values of a field mean "drop", and the factor that keeps the expectation exactly.
struct DropoutRate {
  explicit DropoutRate(double probability);  // in [0, 1); rounded to a multiple of 2^-16
  uint32_t threshold;
  float scale;  // 1 / (1 - threshold / 65536)
};

// The decision for one element, as the definition has it; kernels compute many at once.
bool dropout_keeps(const DropoutRate& rate, uint64_t key, int64_t sample, int64_t position, int64_t channel);

}  // namespace ridgeline
