// Vectors of RIDGELINE_LANES floats for one CpuTarget, as GCC vector types: arithmetic, comparisons and `mask ? a : b`
// are the compiler's own; here stand loads and stores of the three storage formats, sums over lanes and the
// exponential. Included by core/for_each_target.h only.

#define RIDGELINE_INLINE inline __attribute__((always_inline))

namespace ridgeline::RIDGELINE_TARGET {
namespace {

constexpr int64_t kLanes = RIDGELINE_LANES;
// Intrinsics with a full mask stand for those without one, whose definitions in GCC 12's header make it warn.
[[maybe_unused]] constexpr uint16_t kAllLanes = 0xffff;
typedef float Floats __attribute__((vector_size(RIDGELINE_LANES * 4)));
typedef int32_t Ints __attribute__((vector_size(RIDGELINE_LANES * 4)));
typedef uint32_t Words __attribute__((vector_size(RIDGELINE_LANES * 4)));
typedef uint16_t Shorts __attribute__((vector_size(RIDGELINE_LANES * 2)));
typedef double WideDoubles __attribute__((vector_size(RIDGELINE_LANES * 8)));

RIDGELINE_INLINE Floats splat(float value) { return value - Floats{}; }

template <typename To, typename From>
RIDGELINE_INLINE To bits_as(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}

template <typename Vector, typename Element>
RIDGELINE_INLINE Vector load_vector(const Element* from) {
  Vector vector;
  __builtin_memcpy(&vector, from, sizeof(vector));
  return vector;
}

// Spelled out because GCC 12 makes several instructions of the general conversion.
RIDGELINE_INLINE Words widen(const Shorts& shorts) {
#if RIDGELINE_LANES == 16
  return bits_as<Words>(_mm512_maskz_cvtepu16_epi32(kAllLanes, bits_as<__m256i>(shorts)));
#elif RIDGELINE_LANES == 8
  return bits_as<Words>(_mm256_cvtepu16_epi32(bits_as<__m128i>(shorts)));
#else
  return __builtin_convertvector(shorts, Words);
#endif
}

RIDGELINE_INLINE Shorts narrow(const Words& words) {
#if RIDGELINE_LANES == 16
  return bits_as<Shorts>(_mm512_maskz_cvtepi32_epi16(kAllLanes, bits_as<__m512i>(words)));
#else
  return __builtin_convertvector(words, Shorts);
#endif
}

RIDGELINE_INLINE Floats decode(Float32, const Floats& stored) { return stored; }

RIDGELINE_INLINE Floats decode(BFloat16, const Shorts& stored) { return bits_as<Floats>(widen(stored) << 16); }

RIDGELINE_INLINE Floats decode(Float16, const Shorts& stored) {
#if RIDGELINE_LANES == 16
  return bits_as<Floats>(_mm512_maskz_cvtph_ps(kAllLanes, bits_as<__m256i>(stored)));
#elif RIDGELINE_LANES == 8
  return bits_as<Floats>(_mm256_cvtph_ps(bits_as<__m128i>(stored)));
#else
  // Shift exponent and mantissa into place and repair the exponent's bias by a product, which also normalises
  // subnormal halves; infinity and NaN get the full exponent.
  const Words half = widen(stored);
  const Floats magnitude = bits_as<Floats>((half & 0x7fffu) << 13) * 0x1p112f;
  const Words full = bits_as<Words>(magnitude) | 0x7f800000u;
  const Words value = (half & 0x7c00u) == 0x7c00u ? full : bits_as<Words>(magnitude);
  return bits_as<Floats>(value | ((half & 0x8000u) << 16));
#endif
}

RIDGELINE_INLINE Floats encode(Float32, const Floats& value) { return value; }

// Round to nearest even; NaN stays NaN.
RIDGELINE_INLINE Shorts encode(BFloat16, const Floats& value) {
  const Words bits = bits_as<Words>(value);
  const Words rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const Words nan = (bits >> 16) | 0x40u;
  return narrow((value == value) ? rounded : nan);
}

RIDGELINE_INLINE Shorts encode(Float16, const Floats& value) {
#if RIDGELINE_LANES == 16
  return bits_as<Shorts>(
      _mm512_maskz_cvtps_ph(kAllLanes, bits_as<__m512>(value), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#elif RIDGELINE_LANES == 8
  return bits_as<Shorts>(_mm256_cvtps_ph(bits_as<__m256>(value), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#else
  const Words sign = (bits_as<Words>(value) & 0x80000000u) >> 16;
  const Words bits = bits_as<Words>(value) & 0x7fffffffu;
  const Floats magnitude = bits_as<Floats>(bits);
  // Below 2^-14 one unit in the last place of 0.5f is one unit of a subnormal half: the sum rounds as wanted.
  const Words subnormal = bits_as<Words>(magnitude + 0.5f) - 0x3f000000u;
  const Words normal = (bits - 0x38000000u + 0xfffu + ((bits >> 13) & 1u)) >> 13;
  Words half = magnitude < 0x1p-14f ? subnormal : normal;
  half = magnitude >= 65520.0f ? Words{} + 0x7c00u : half;
  half = magnitude == magnitude ? half : Words{} + 0x7e00u;
  return narrow(half | sign);
#endif
}

// `count` valid elements from `from`; lanes past them are zero. With count >= kLanes this is one plain load.
template <typename Format>
RIDGELINE_INLINE Floats load(const typename Format::Stored* from, int64_t count = kLanes) {
  typedef typename Format::Stored StoredVector __attribute__((vector_size(kLanes * sizeof(typename Format::Stored))));
  if (__builtin_expect(count >= kLanes, true)) return decode(Format{}, load_vector<StoredVector>(from));
  typename Format::Stored buffer[kLanes] = {};
  for (int64_t i = 0; i < count; ++i) buffer[i] = from[i];
  return decode(Format{}, load_vector<StoredVector>(buffer));
}

template <typename Format>
RIDGELINE_INLINE void store(typename Format::Stored* to, const Floats& value, int64_t count = kLanes) {
  const auto stored = encode(Format{}, value);
  if (__builtin_expect(count >= kLanes, true)) {
    __builtin_memcpy(to, &stored, sizeof(stored));
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = stored[i];
  }
}

// Lanes below `count` keep their value, the others become `other`.
RIDGELINE_INLINE Floats keep_first(const Floats& value, int64_t count, float other) {
  if (__builtin_expect(count >= kLanes, true)) return value;
  Floats result = value;
  for (int64_t i = count; i < kLanes; ++i) result[i] = other;
  return result;
}

RIDGELINE_INLINE float sum_lanes(Floats value) {
  for (int64_t width = kLanes / 2; width > 0; width /= 2) {
    for (int64_t i = 0; i < width; ++i) value[i] += value[i + width];
  }
  return value[0];
}

// The larger; NaN in either gives NaN, as torch.max does.
RIDGELINE_INLINE Floats larger(const Floats& a, const Floats& b) { return (a > b) | (a != a) ? a : b; }

RIDGELINE_INLINE float max_lanes(const Floats& value) {
  float result = value[0];
  for (int64_t i = 1; i < kLanes; ++i) result = (value[i] > result || value[i] != value[i]) ? value[i] : result;
  return result;
}

RIDGELINE_INLINE Floats square_root(const Floats& value) {
#if RIDGELINE_LANES == 16
  return bits_as<Floats>(_mm512_maskz_sqrt_ps(kAllLanes, bits_as<__m512>(value)));
#elif RIDGELINE_LANES == 8
  return bits_as<Floats>(_mm256_sqrt_ps(bits_as<__m256>(value)));
#elif defined(__x86_64__)
  return bits_as<Floats>(_mm_sqrt_ps(bits_as<__m128>(value)));
#else
  Floats result;
  for (int64_t i = 0; i < kLanes; ++i) result[i] = __builtin_sqrtf(value[i]);
  return result;
#endif
}

// e^x within 2 units in the last place for x in [-87, 88]; below it is 0, above it stays at e^88. NaN stays NaN.
// x = n ln 2 + r with |r| <= ln 2 / 2, e^r by its Taylor series (next term r^8/8! < 6e-9), 2^n by its bits.
RIDGELINE_INLINE Floats exponential(Floats x) {
  const auto underflow = x < -87.0f;
  x = x > 88.0f ? splat(88.0f) : x;
  x = underflow ? splat(-87.0f) : x;
  const Floats shifted = x * 1.44269504f + 12582912.0f;  // 1.5 * 2^23: the sum's last bits are the rounded integer
  const Floats n = shifted - 12582912.0f;
  const Floats r = (x - n * 0.693145752f) - n * 1.42860677e-6f;
  Floats p = r * (1.0f / 5040.0f) + (1.0f / 720.0f);
  p = p * r + (1.0f / 120.0f);
  p = p * r + (1.0f / 24.0f);
  p = p * r + (1.0f / 6.0f);
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const Words power = (bits_as<Words>(shifted) - 0x4b400000u + 127u) << 23;
  return underflow ? Floats{} : p * bits_as<Floats>(power);
}

}  // namespace
}  // namespace ridgeline::RIDGELINE_TARGET
