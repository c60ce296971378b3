// Normal values, 32 at a time. This file must be compiled without contraction of products and sums
// (cmake/Compiler.cmake sees to it): then every target rounds alike.
#include "core/philox_lanes.inl"

namespace ridgeline::RIDGELINE_TARGET {
namespace {

typedef double Doubles __attribute__((vector_size(RIDGELINE_LANES * 4)));
typedef float HalfFloats __attribute__((vector_size(RIDGELINE_LANES * 2)));

// An integer below 2^52 as a double: its bits below those of 2^52.
RIDGELINE_INLINE Doubles to_double(const Longs& integer) {
  return bits_as<Doubles>(integer | 0x4330000000000000u) - 0x1p52;
}

RIDGELINE_INLINE Doubles square_root(const Doubles& value) {
#if RIDGELINE_LANES == 16
  return bits_as<Doubles>(_mm512_maskz_sqrt_pd(0xff, bits_as<__m512d>(value)));
#elif RIDGELINE_LANES == 8
  return bits_as<Doubles>(_mm256_sqrt_pd(bits_as<__m256d>(value)));
#elif defined(__x86_64__)
  return bits_as<Doubles>(_mm_sqrt_pd(bits_as<__m128d>(value)));
#else
  Doubles result;
  for (int64_t i = 0; i < kWideLanes; ++i) result[i] = __builtin_sqrt(value[i]);
  return result;
#endif
}

// ln x for positive normal x: x = m 2^e with m in [sqrt(1/2), sqrt(2)), ln m = 2 artanh(s), s = (m - 1) / (m + 1).
// |s| < 0.1716, so the series is cut at a relative error of 4e-14.
RIDGELINE_INLINE Doubles logarithm(const Doubles& x) {
  const Longs bits = bits_as<Longs>(x) - 0x3fe6a09e667f3bcdu;  // bits of sqrt(1/2)
  const Longs mantissa = (bits & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu;
  // The exponent is signed; 2048 is added and taken away to convert it as a positive number.
  const Doubles exponent = to_double((bits + (Longs{} + (uint64_t{2048} << 52))) >> 52 & 0xfffu) - 2048.0;
  const Doubles m = bits_as<Doubles>(mantissa);
  const Doubles s = (m - 1.0) / (m + 1.0);
  const Doubles z = s * s;
  Doubles series = z * (1.0 / 17) + (1.0 / 15);
  series = series * z + (1.0 / 13);
  series = series * z + (1.0 / 11);
  series = series * z + (1.0 / 9);
  series = series * z + (1.0 / 7);
  series = series * z + (1.0 / 5);
  series = series * z + (1.0 / 3);
  series = series * z + 1.0;
  return exponent * 0.69314718055994530942 + 2.0 * s * series;
}

struct SineCosine {
  Doubles sine, cosine;
};

// sin and cos of 2 pi v for v in (0, 1): the nearest quarter turn q is taken off, the rest (up to pi / 4) goes through
// Taylor series (errors below 3e-14), and q swaps and negates.
RIDGELINE_INLINE SineCosine sine_cosine_of_turn(const Doubles& v) {
  const Doubles quarters = v * 4.0;
  const Doubles shifted = quarters + 0x1.8p52;
  const Longs q = bits_as<Longs>(shifted) & 3u;
  const Doubles angle = (quarters - (shifted - 0x1.8p52)) * 1.57079632679489661923;
  const Doubles z = angle * angle;
  Doubles sine = z * (1.0 / 6227020800.0) - (1.0 / 39916800.0);
  sine = sine * z + (1.0 / 362880.0);
  sine = sine * z - (1.0 / 5040.0);
  sine = sine * z + (1.0 / 120.0);
  sine = sine * z - (1.0 / 6.0);
  sine = angle + angle * (z * sine);
  Doubles cosine = z * (-1.0 / 87178291200.0) + (1.0 / 479001600.0);
  cosine = cosine * z - (1.0 / 3628800.0);
  cosine = cosine * z + (1.0 / 40320.0);
  cosine = cosine * z - (1.0 / 720.0);
  cosine = cosine * z + (1.0 / 24.0);
  cosine = cosine * z - 0.5;
  cosine = cosine * z + 1.0;
  const auto odd = (q & 1u) != 0;
  const Longs sine_sign = (q & 2u) << 62;
  const Longs cosine_sign = ((q + 1u) & 2u) << 62;
  const Longs sine_bits = bits_as<Longs>(odd ? cosine : sine) ^ sine_sign;
  const Longs cosine_bits = bits_as<Longs>(odd ? sine : cosine) ^ cosine_sign;
  return {bits_as<Doubles>(sine_bits), bits_as<Doubles>(cosine_bits)};
}

RIDGELINE_INLINE void store_floats(float* to, const Doubles& value) {
  const HalfFloats floats = __builtin_convertvector(value, HalfFloats);
  __builtin_memcpy(to, &floats, sizeof(floats));
}

// Elements 32 group ... 32 group + 31.
inline void normal_group(float* values, uint64_t key, uint64_t group, double std) {
  for (int64_t lane = 0; lane < 8; lane += kWideLanes) {
    const Longs block = wide_lane_numbers() + (group * 8 + static_cast<uint64_t>(lane));
    const PhiloxLanes random = philox_lanes({{block & 0xffffffffu, block >> 32, Longs{}, Longs{}}}, key);
    for (int64_t pair = 0; pair < 2; ++pair) {
      const Doubles u = (to_double(random.word[2 * pair]) + 0.5) * 0x1p-32;
      const Doubles v = (to_double(random.word[2 * pair + 1]) + 0.5) * 0x1p-32;
      const Doubles radius = square_root(-2.0 * logarithm(u)) * std;
      const SineCosine turn = sine_cosine_of_turn(v);
      store_floats(values + 16 * pair + lane, radius * turn.cosine);
      store_floats(values + 16 * pair + 8 + lane, radius * turn.sine);
    }
  }
}

void normal_loop(float* values, int64_t count, uint64_t key, uint64_t first, double std) {
  float buffer[32];
  while (count > 0) {
    const int64_t skipped = static_cast<int64_t>(first % 32);
    if (skipped == 0 && count >= 32) {
      normal_group(values, key, first / 32, std);
      values += 32, first += 32, count -= 32;
      continue;
    }
    normal_group(buffer, key, first / 32, std);
    const int64_t taken = count < 32 - skipped ? count : 32 - skipped;
    for (int64_t i = 0; i < taken; ++i) values[i] = buffer[skipped + i];
    values += taken, first += static_cast<uint64_t>(taken), count -= taken;
  }
}

}  // namespace
}  // namespace ridgeline::RIDGELINE_TARGET
