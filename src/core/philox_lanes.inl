// Philox4x32-10 for kLanes / 2 counters at once, each 32-bit word in a 64-bit lane. For files that are compiled through
// core/for_each_target.h.

namespace ridgeline::RIDGELINE_TARGET {
namespace {

constexpr int64_t kWideLanes = RIDGELINE_LANES / 2;
typedef uint64_t Longs __attribute__((vector_size(RIDGELINE_LANES * 4)));

// Product of the low 32 bits of each lane.
RIDGELINE_INLINE Longs multiply_low(const Longs& a, const Longs& b) {
#if RIDGELINE_LANES == 16
  return bits_as<Longs>(_mm512_maskz_mul_epu32(0xff, bits_as<__m512i>(a), bits_as<__m512i>(b)));
#elif RIDGELINE_LANES == 8
  return bits_as<Longs>(_mm256_mul_epu32(bits_as<__m256i>(a), bits_as<__m256i>(b)));
#elif defined(__x86_64__)
  return bits_as<Longs>(_mm_mul_epu32(bits_as<__m128i>(a), bits_as<__m128i>(b)));
#else
  return (a & 0xffffffffu) * (b & 0xffffffffu);
#endif
}

struct PhiloxLanes {
  Longs word[4];
};

// The upper halves of the result's lanes are zero.
RIDGELINE_INLINE PhiloxLanes philox_lanes(PhiloxLanes counter, uint64_t key) {
  const Longs zero = {};
  const Longs multiplier0 = zero + 0xD2511F53u;
  const Longs multiplier1 = zero + 0xCD9E8D57u;
  uint32_t key0 = static_cast<uint32_t>(key);
  uint32_t key1 = static_cast<uint32_t>(key >> 32);
  Longs c0 = counter.word[0], c1 = counter.word[1], c2 = counter.word[2], c3 = counter.word[3];
  for (int round = 0; round < 10; ++round) {
    const Longs product0 = multiply_low(c0, multiplier0);
    const Longs product1 = multiply_low(c2, multiplier1);
    c0 = (product1 >> 32) ^ c1 ^ (zero + key0);
    c2 = (product0 >> 32) ^ c3 ^ (zero + key1);
    c1 = product1;  // the upper halves are ignored by multiply_low and cut off at the end
    c3 = product0;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  const Longs mask = zero + 0xffffffffu;
  return {{c0 & mask, c1 & mask, c2 & mask, c3 & mask}};
}

// 0, 1, 2, ...
RIDGELINE_INLINE Longs wide_lane_numbers() {
  Longs numbers = {};
  for (int64_t i = 0; i < kWideLanes; ++i) numbers[i] = static_cast<uint64_t>(i);
  return numbers;
}

}  // namespace
}  // namespace ridgeline::RIDGELINE_TARGET
