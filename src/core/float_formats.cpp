#include "core/float_formats.h"

#include "core/error.h"
#include "core/storage_format.h"

#define RIDGELINE_TARGET_FILE "core/float_formats_loops.inl"
#include "core/for_each_target.h"

namespace ridgeline {

void decode_floats(FloatFormat format, const std::byte* from, float* to, int64_t count) {
  switch (format) {
    case FloatFormat::float32:
      return RIDGELINE_PICK(decode_row<Float32>)(from, to, count);
    case FloatFormat::bfloat16:
      return RIDGELINE_PICK(decode_row<BFloat16>)(from, to, count);
    case FloatFormat::float16:
      return RIDGELINE_PICK(decode_row<Float16>)(from, to, count);
  }
  throw InternalError("FloatFormat {}", static_cast<int>(format));
}

void encode_floats(FloatFormat format, const float* from, std::byte* to, int64_t count) {
  switch (format) {
    case FloatFormat::float32:
      return RIDGELINE_PICK(encode_row<Float32>)(from, to, count);
    case FloatFormat::bfloat16:
      return RIDGELINE_PICK(encode_row<BFloat16>)(from, to, count);
    case FloatFormat::float16:
      return RIDGELINE_PICK(encode_row<Float16>)(from, to, count);
  }
  throw InternalError("FloatFormat {}", static_cast<int>(format));
}

}  // namespace ridgeline
