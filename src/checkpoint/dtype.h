// DType: how the elements of a stored tensor are encoded. The names are those of the safetensors format.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ridgeline::checkpoint {

enum class DType { BOOL, U8, I8, F8_E5M2, F8_E4M3, U16, I16, F16, BF16, U32, I32, F32, U64, I64, F64 };

int64_t element_size(DType dtype);  // bytes
std::string to_string(DType dtype);
std::optional<DType> parse_dtype(std::string_view name);
std::string known_dtypes();  // "BOOL, U8, ...", for messages

// Product of `shape`, or nothing where a dimension is negative or the product does not fit in int64_t.
std::optional<int64_t> checked_elements(const std::vector<int64_t>& shape);
// The same in bytes.
std::optional<int64_t> checked_bytes(const std::vector<int64_t>& shape, DType dtype);

std::string shape_text(const std::vector<int64_t>& shape);  // "[2, 3]"

}  // namespace ridgeline::checkpoint
