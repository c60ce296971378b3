// Sum or maximum of several arrays, element by element.
//
// The arrays are taken in the order given, each element from first to last, so the result depends on nothing but the
// values and that order: not on how a tensor is cut into chunks, nor on who computes. fp16 and bf16 are added in fp32
// and rounded once. Integers wrap. A maximum with a NaN is NaN.
#pragma once

#include <cstdint>

#include "mesh/reduction.h"

namespace ridgeline::mesh::shared_memory {

enum class Element { float32, bfloat16, float16, float64, int32, int64, uint8 };
int64_t bytes_of(Element element);

// `out` may be one of the sources.
void reduce(void* out, const void* const* sources, int64_t source_count, int64_t elements, Element element,
            Reduction reduction);

}  // namespace ridgeline::mesh::shared_memory
