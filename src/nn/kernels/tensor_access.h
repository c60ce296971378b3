// What all kernels share: checks of the tensors they are given and the way from a tensor's dtype to a storage format.
// For the sources of kernels only. A tensor that fails a check is a fault of the caller: InternalError.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>

#include "core/error.h"
#include "core/storage_format.h"

namespace ridgeline::nn {

// Elements that one task of at::parallel_for takes at least: fewer are not worth waking a thread.
inline constexpr int64_t kGrainElements = 32768;

inline int64_t rows_per_task(int64_t columns) {
  return std::max<int64_t>(1, kGrainElements / std::max<int64_t>(1, columns));
}

// Sums over rows: rows are cut in blocks of a size that depends on their number only; each block has its own sums, which
// are then added in the blocks' order.
inline int64_t rows_in_block(int64_t rows) { return std::max<int64_t>(32, (rows + 127) / 128); }

// All elements, in row-major order without gaps.
inline void check_dense(const at::Tensor& tensor, const char* name) {
  if (!tensor.defined() || !tensor.is_contiguous()) throw InternalError("{}: expected a contiguous tensor", name);
}

inline void check_like(const at::Tensor& tensor, const at::Tensor& model, const char* name) {
  check_dense(tensor, name);
  if (tensor.sizes() != model.sizes() || tensor.scalar_type() != model.scalar_type() ||
      tensor.device() != model.device()) {
    throw InternalError("{}: expected a tensor like its partner in shape, dtype and device", name);
  }
}

inline void check_vector(const at::Tensor& tensor, int64_t elements, at::ScalarType dtype, const char* name) {
  check_dense(tensor, name);
  if (tensor.numel() != elements || tensor.scalar_type() != dtype) {
    throw InternalError("{}: expected {} elements of {}, found {} of {}", name, elements, c10::toString(dtype),
                        tensor.numel(), c10::toString(tensor.scalar_type()));
  }
}

// Calls function(Float32{}), function(BFloat16{}) or function(Float16{}).
template <typename Function>
void with_format(at::ScalarType dtype, Function&& function) {
  switch (dtype) {
    case at::kFloat:
      return function(Float32{});
    case at::kBFloat16:
      return function(BFloat16{});
    case at::kHalf:
      return function(Float16{});
    default:
      throw InternalError("kernel called with dtype {}: expected float, bfloat16 or half", c10::toString(dtype));
  }
}

// Null for an undefined tensor.
template <typename Format>
typename Format::Stored* stored(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<typename Format::Stored*>(tensor.data_ptr()) : nullptr;
}

inline float* floats(const at::Tensor& tensor) { return stored<Float32>(tensor); }

}  // namespace ridgeline::nn
