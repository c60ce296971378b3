// The fields "dtype" and "shape" of a tensor in a JSON file, a known type and a size that can be counted in bytes.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "checkpoint/dtype.h"

namespace ridgeline::checkpoint {

struct TensorKind {
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
};

// Throws InputError naming `where`.
TensorKind json_tensor_kind(const nlohmann::json& tensor, const std::string& where);

}  // namespace ridgeline::checkpoint
