#include "checkpoint/tensor_kind.h"

#include <optional>

#include "core/error.h"
#include "core/json_input.h"

namespace ridgeline::checkpoint {

TensorKind json_tensor_kind(const nlohmann::json& tensor, const std::string& where) {
  const std::string name = json_string(tensor, "dtype", where);
  const std::optional<DType> dtype = parse_dtype(name);
  if (!dtype) throw InputError("{}: dtype \"{}\", expected one of {}", where, name, known_dtypes());
  TensorKind kind{*dtype, json_counts(tensor, "shape", where)};
  if (!checked_bytes(kind.shape, kind.dtype)) {
    throw InputError("{}: shape {} is too large", where, shape_text(kind.shape));
  }
  return kind;
}

}  // namespace ridgeline::checkpoint
