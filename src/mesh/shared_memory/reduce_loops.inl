// Sum and maximum of arrays in the three formats that are computed with in fp32.

namespace ridgeline::RIDGELINE_TARGET {
namespace {

template <typename Format, bool maximum>
void reduce_arrays(void* out, const void* const* sources, int64_t source_count, int64_t elements) {
  using Stored = typename Format::Stored;
  auto* to = static_cast<Stored*>(out);
  const auto from = [&](int64_t source) { return static_cast<const Stored*>(sources[source]); };
  for (int64_t i = 0; i < elements; i += kLanes) {
    const int64_t count = elements - i;
    Floats value = load<Format>(from(0) + i, count);
    for (int64_t source = 1; source < source_count; ++source) {
      const Floats other = load<Format>(from(source) + i, count);
      if constexpr (maximum) {
        value = larger(value, other);
      } else {
        value += other;
      }
    }
    store<Format>(to + i, value, count);
  }
}

}  // namespace
}  // namespace ridgeline::RIDGELINE_TARGET
