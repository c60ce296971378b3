// Checkpoints from Hugging Face's folders and to them, one tensor after the other: memory is the largest tensor.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "checkpoint/hugging_face/reader.h"
#include "checkpoint/reader.h"
#include "spec/train.h"

namespace ridgeline::checkpoint {

// Writes the weights as the checkpoint of step 0 in `folder`, without optimizer state, and returns it. `state` is the
// manifest's. Failure where the disk fails; then there is no checkpoint.
Path import_hugging_face(const HuggingFaceReader& weights, const spec::ModelSpec& model, const Path& folder,
                         const nlohmann::json& state);

struct ExportOptions {
  spec::Precision stored = spec::Precision::fp32;
  uint64_t largest_file = uint64_t{5} << 30;  // bytes of tensors; a larger tensor has a file of its own
};

struct Exported {
  uint64_t bytes = 0;  // of tensors
  int64_t files = 0;
};

// Writes config.json and the weights in safetensors form to `folder`, which must not exist or be empty; it appears when
// all is written. Throws InputError where no family of transformers can say the model.
Exported export_hugging_face(CheckpointReader& reader, const spec::ModelSpec& model, const Path& folder,
                             const ExportOptions& options);

}  // namespace ridgeline::checkpoint
