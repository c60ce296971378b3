#include "mesh/shared_memory/reduce.h"

#include <algorithm>
#include <type_traits>

#include "core/error.h"

#define RIDGELINE_TARGET_FILE "mesh/shared_memory/reduce_loops.inl"
#include "core/for_each_target.h"

namespace ridgeline::mesh::shared_memory {
namespace {

using Loop = void (*)(void* out, const void* const* sources, int64_t source_count, int64_t elements);

template <typename Value>
Value larger(Value a, Value b) {
  if constexpr (std::is_floating_point_v<Value>) {
    return a > b || a != a ? a : b;
  } else {
    return std::max(a, b);
  }
}

// Unsigned numbers stand for signed ones in sums, which then wrap instead of being undefined.
template <typename Value, bool maximum>
void reduce_plain(void* out, const void* const* sources, int64_t source_count, int64_t elements) {
  auto* to = static_cast<Value*>(out);
  // A block at a time, so that the running result stays in the nearest cache.
  constexpr int64_t block = 512;
  Value result[block];
  for (int64_t begin = 0; begin < elements; begin += block) {
    const int64_t count = std::min(block, elements - begin);
    const auto* first = static_cast<const Value*>(sources[0]) + begin;
    std::copy(first, first + count, result);
    for (int64_t source = 1; source < source_count; ++source) {
      const auto* from = static_cast<const Value*>(sources[source]) + begin;
      for (int64_t i = 0; i < count; ++i) {
        if constexpr (maximum) {
          result[i] = larger(result[i], from[i]);
        } else {
          result[i] = static_cast<Value>(result[i] + from[i]);
        }
      }
    }
    std::copy(result, result + count, to + begin);
  }
}

template <bool maximum>
Loop loop_of(Element element) {
  switch (element) {
    case Element::float32:
      return RIDGELINE_PICK(reduce_arrays<Float32, maximum>);
    case Element::bfloat16:
      return RIDGELINE_PICK(reduce_arrays<BFloat16, maximum>);
    case Element::float16:
      return RIDGELINE_PICK(reduce_arrays<Float16, maximum>);
    case Element::float64:
      return reduce_plain<double, maximum>;
    case Element::int32:
      return reduce_plain<std::conditional_t<maximum, int32_t, uint32_t>, maximum>;
    case Element::int64:
      return reduce_plain<std::conditional_t<maximum, int64_t, uint64_t>, maximum>;
    case Element::uint8:
      return reduce_plain<uint8_t, maximum>;
  }
  throw InternalError("element type {}", static_cast<int>(element));
}

}  // namespace

int64_t bytes_of(Element element) {
  switch (element) {
    case Element::uint8:
      return 1;
    case Element::bfloat16:
    case Element::float16:
      return 2;
    case Element::float32:
    case Element::int32:
      return 4;
    case Element::float64:
    case Element::int64:
      return 8;
  }
  throw InternalError("element type {}", static_cast<int>(element));
}

void reduce(void* out, const void* const* sources, int64_t source_count, int64_t elements, Element element,
            Reduction reduction) {
  const Loop loop = reduction == Reduction::sum ? loop_of<false>(element) : loop_of<true>(element);
  loop(out, sources, source_count, elements);
}

}  // namespace ridgeline::mesh::shared_memory
