// Conversion of rows between fp32 and a storage format.

namespace ridgeline::RIDGELINE_TARGET {
namespace {

template <typename Format>
void decode_row(const std::byte* from, float* to, int64_t count) {
  constexpr int64_t size = sizeof(typename Format::Stored);
  int64_t i = 0;
  typedef typename Format::Stored StoredVector __attribute__((vector_size(kLanes * sizeof(typename Format::Stored))));
  for (; i + kLanes <= count; i += kLanes) {
    store<Float32>(to + i, decode(Format{}, load_vector<StoredVector>(from + i * size)));
  }
  if (i == count) return;
  typename Format::Stored rest[kLanes] = {};
  __builtin_memcpy(rest, from + i * size, static_cast<size_t>((count - i) * size));
  store<Float32>(to + i, load<Format>(rest), count - i);
}

template <typename Format>
void encode_row(const float* from, std::byte* to, int64_t count) {
  constexpr int64_t size = sizeof(typename Format::Stored);
  for (int64_t i = 0; i < count; i += kLanes) {
    const auto stored = encode(Format{}, load<Float32>(from + i, count - i));
    const int64_t left = count - i < kLanes ? count - i : kLanes;
    __builtin_memcpy(to + i * size, &stored, static_cast<size_t>(left * size));
  }
}

}  // namespace
}  // namespace ridgeline::RIDGELINE_TARGET
