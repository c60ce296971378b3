// Dropout of one row of channels. Compiled without contraction of products and sums (cmake/Compiler.cmake), so that
// adding a residual rounds as the plain version does.
#include "core/philox_lanes.inl"

namespace ridgeline::RIDGELINE_TARGET {
namespace {

// The decision fields of channels 64 group ... 64 group + 63 (core/random.h).
RIDGELINE_INLINE void dropout_fields(uint16_t* fields, uint64_t key, uint64_t group, uint64_t position,
                                     uint64_t sample) {
  typedef uint16_t HalfShorts __attribute__((vector_size(RIDGELINE_LANES)));
  for (int64_t lane = 0; lane < 8; lane += kWideLanes) {
    const Longs zero = {};
    const Longs block = wide_lane_numbers() + (group * 8 + static_cast<uint64_t>(lane));
    const PhiloxLanes random =
        philox_lanes({{block, zero + position, zero + (sample & 0xffffffffu), zero + (sample >> 32)}}, key);
    for (int64_t word = 0; word < 4; ++word) {
      const HalfShorts low = __builtin_convertvector(random.word[word], HalfShorts);
      const HalfShorts high = __builtin_convertvector(random.word[word] >> 16, HalfShorts);
      __builtin_memcpy(fields + 16 * word + lane, &low, sizeof(low));
      __builtin_memcpy(fields + 16 * word + 8 + lane, &high, sizeof(high));
    }
  }
}

// `residual` may be null.
template <typename Format>
void dropout_row(const typename Format::Stored* x, const typename Format::Stored* residual,
                 typename Format::Stored* out, int64_t channels, uint64_t key, uint64_t position, uint64_t sample,
                 uint64_t first_channel, uint32_t threshold, float scale) {
  uint16_t fields[64 + kLanes] = {};  // loads of whole vectors may reach past the last field
  for (int64_t begin = 0; begin < channels;) {
    const uint64_t channel = first_channel + static_cast<uint64_t>(begin);
    const int64_t skipped = static_cast<int64_t>(channel % 64);
    const int64_t end = begin + 64 - skipped < channels ? begin + 64 - skipped : channels;
    dropout_fields(fields, key, channel / 64, position, sample);
    for (int64_t i = begin; i < end; i += kLanes) {
      const Words field = widen(load_vector<Shorts>(fields + skipped + (i - begin)));
      const Floats value = load<Format>(x + i, end - i) * scale;
      Floats kept = field >= threshold ? value : Floats{};
      if (residual != nullptr) kept = load<Format>(residual + i, end - i) + kept;
      store<Format>(out + i, kept, end - i);
    }
    begin = end;
  }
}

}  // namespace
}  // namespace ridgeline::RIDGELINE_TARGET
