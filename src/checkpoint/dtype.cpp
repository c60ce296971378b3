#include "checkpoint/dtype.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <utility>

#include "core/error.h"

namespace ridgeline::checkpoint {
namespace {

struct Encoding {
  DType dtype;
  const char* name;
  int64_t size;
};

constexpr std::array<Encoding, 15> kEncodings = {{{DType::BOOL, "BOOL", 1},
                                                  {DType::U8, "U8", 1},
                                                  {DType::I8, "I8", 1},
                                                  {DType::F8_E5M2, "F8_E5M2", 1},
                                                  {DType::F8_E4M3, "F8_E4M3", 1},
                                                  {DType::U16, "U16", 2},
                                                  {DType::I16, "I16", 2},
                                                  {DType::F16, "F16", 2},
                                                  {DType::BF16, "BF16", 2},
                                                  {DType::U32, "U32", 4},
                                                  {DType::I32, "I32", 4},
                                                  {DType::F32, "F32", 4},
                                                  {DType::U64, "U64", 8},
                                                  {DType::I64, "I64", 8},
                                                  {DType::F64, "F64", 8}}};

const Encoding& encoding(DType dtype) {
  for (const Encoding& each : kEncodings) {
    if (each.dtype == dtype) return each;
  }
  throw InternalError("no encoding for DType {}", static_cast<int>(dtype));
}

}  // namespace

int64_t element_size(DType dtype) { return encoding(dtype).size; }

std::string to_string(DType dtype) { return encoding(dtype).name; }

std::optional<DType> parse_dtype(std::string_view name) {
  for (const Encoding& each : kEncodings) {
    if (name == each.name) return each.dtype;
  }
  return std::nullopt;
}

std::string known_dtypes() {
  std::string text;
  for (const Encoding& each : kEncodings) {
    if (!text.empty()) text += ", ";
    text += each.name;
  }
  return text;
}

std::optional<int64_t> checked_elements(const std::vector<int64_t>& shape) {
  int64_t product = 1;
  bool empty = false;
  for (int64_t size : shape) {
    if (size < 0) return std::nullopt;
    // A zero must not hide a product that overflows in another order of the dimensions.
    if (size == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(product, size, &product)) {
      return std::nullopt;
    }
  }
  return empty ? 0 : product;
}

std::optional<int64_t> checked_bytes(const std::vector<int64_t>& shape, DType dtype) {
  std::optional<int64_t> elements = checked_elements(shape);
  int64_t bytes = 0;
  if (!elements || __builtin_mul_overflow(*elements, element_size(dtype), &bytes)) return std::nullopt;
  return bytes;
}

std::string shape_text(const std::vector<int64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

}  // namespace ridgeline::checkpoint
