// The values of a tensor of Hugging Face's and those of our parameter: a copy between the two shapes with a conversion of
// the number format, in both directions.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "checkpoint/dtype.h"
#include "core/float_formats.h"
#include "spec/hugging_face.h"

namespace ridgeline::checkpoint {

// The format of a dtype that weights may have; empty for others.
std::optional<FloatFormat> float_format(DType dtype);

// Copies what `box` of our parameter and the tensor have in common into `destination`, which holds the box row-major.
// `bytes` is all of the tensor, which may
// have more rows behind those of its box.
void copy_from_theirs(const spec::HuggingFaceTensor& tensor, FloatFormat format, std::span<const std::byte> bytes,
                      const spec::Box& box, std::span<float> destination);

// All of the tensor, as its file holds it, from the values of its box, row-major.
void copy_to_theirs(const spec::HuggingFaceTensor& tensor, FloatFormat format, std::span<const float> values,
                    std::span<std::byte> bytes);

}  // namespace ridgeline::checkpoint
