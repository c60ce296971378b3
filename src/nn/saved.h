// What a piece keeps of a forward pass for its backward: a record with named fields, so that it is known, can be counted,
// and dies when the record is released.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <memory>

namespace ridgeline::nn {

struct SavedRecord {
  virtual ~SavedRecord() = default;
  // Calls `visit` with the name of every tensor kept (cost/saved_tensors.h has the same names) and the tensor.
  virtual void visit(const std::function<void(const char* name, const at::Tensor&)>& visitor) const = 0;
};
using Saved = std::unique_ptr<SavedRecord>;

}  // namespace ridgeline::nn
