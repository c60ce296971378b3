// Checkpointing: a stage's masters and moments to and from layout-free checkpoints.
//
// Tensors are named by parameter: NAME (fp32 master), NAME.first_moment, NAME.second_moment. Each rank writes the elements
// that it alone is to save and reads the slices that it holds, so layouts may differ between writing and reading.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "checkpoint/hugging_face/reader.h"
#include "checkpoint/reader.h"
#include "checkpoint/writer.h"
#include "nn/flat_parameters.h"
#include "optim/optimizer.h"

namespace ridgeline::train {

// Writes this rank's part. All ranks must call it before rank 0 publishes.
void write_state(const std::filesystem::path& folder, int64_t step, int64_t rank, const nn::FlatParameters& parameters,
                 const optim::Optimizer& optimizer);

// Fills parameters, masters and moments.
void read_state(checkpoint::CheckpointReader& reader, nn::FlatParameters& parameters, optim::Optimizer& optimizer);

// Fills parameters and masters from weights in Hugging Face's form; each rank reads its slices.
void read_weights(const checkpoint::HuggingFaceReader& weights, nn::FlatParameters& parameters,
                  optim::Optimizer& optimizer);

// Fills parameters alone, for evaluation and generation.
void read_parameters(checkpoint::CheckpointReader& reader, nn::FlatParameters& parameters,
                     const nn::FlatParameters::Sink& sink = {});

}  // namespace ridgeline::train
