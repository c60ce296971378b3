// Tensors to a safetensors file, for another implementation to read.
#pragma once

#include <ATen/ATen.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/safetensors.h"

namespace ridgeline::train {

using NamedList = std::vector<std::pair<std::string, at::Tensor>>;

inline void write_tensors(const std::string& path, const NamedList& tensors) {
  std::vector<checkpoint::TensorEntry> entries;
  std::map<std::string, at::Tensor> by_name;
  for (const auto& [name, tensor] : tensors) {
    const auto type = tensor.scalar_type() == at::kLong     ? checkpoint::DType::I64
                      : tensor.scalar_type() == at::kDouble ? checkpoint::DType::F64
                                                            : checkpoint::DType::F32;
    entries.push_back({name, type, tensor.sizes().vec()});
    by_name[name] = tensor.contiguous();
  }
  checkpoint::SafetensorsWriter writer(checkpoint::real_file_system(), path, checkpoint::plan_safetensors(entries, {}));
  for (const auto& entry : writer.header().tensors) {
    const at::Tensor& tensor = by_name.at(entry.name);
    writer.write({static_cast<const std::byte*>(tensor.data_ptr()), tensor.nbytes()});
  }
  writer.finish();
}

}  // namespace ridgeline::train
