#include "nn/initial_values.h"

#include <ATen/Parallel.h>

#include <span>

#include "core/random.h"

namespace ridgeline::nn {

at::Tensor initial_value(const spec::ParameterSpec& parameter, const spec::Box& box, uint64_t seed) {
  if (parameter.initial == spec::Initial::zeros) return at::zeros(box.extent, at::kFloat);
  if (parameter.initial == spec::Initial::ones) return at::ones(box.extent, at::kFloat);
  at::Tensor value = at::empty(box.extent, at::kFloat);
  if (value.numel() == 0) return value;
  const uint64_t key = random_key(seed, parameter.name);
  const int64_t rows = box.extent[0], row_elements = value.numel() / rows;
  // An element depends on its place in the global tensor alone, so threads may cut the box anywhere along its first dim.
  at::parallel_for(0, rows, 1, [&](int64_t begin, int64_t end) {
    std::vector<int64_t> offset = box.offset, extent = box.extent;
    offset[0] += begin;
    extent[0] = end - begin;
    const std::span<float> part(value.data_ptr<float>() + begin * row_elements, (end - begin) * row_elements);
    fill_normal_box(part, key, parameter.shape, offset, extent, parameter.std);
  });
  return value;
}

}  // namespace ridgeline::nn
