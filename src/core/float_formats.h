// Rows of numbers between fp32 and the formats that files and devices store them in. Rounding is to nearest even; what
// is decoded and encoded again has the same bits. Bytes may lie at any address.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ridgeline {

enum class FloatFormat { float32, bfloat16, float16 };

constexpr int64_t float_bytes(FloatFormat format) { return format == FloatFormat::float32 ? 4 : 2; }

void decode_floats(FloatFormat format, const std::byte* from, float* to, int64_t count);
void encode_floats(FloatFormat format, const float* from, std::byte* to, int64_t count);

}  // namespace ridgeline
