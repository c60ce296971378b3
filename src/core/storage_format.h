// The number formats that tensors are stored in, as types for the vector loops: values are held as `Stored` and always
// computed with in fp32 (core/lanes.inl decodes and encodes).
#pragma once

#include <cstdint>

namespace ridgeline {

struct Float32 {
  using Stored = float;
};
struct BFloat16 {
  using Stored = uint16_t;
};
struct Float16 {
  using Stored = uint16_t;
};

}  // namespace ridgeline
