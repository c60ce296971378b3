#include "checkpoint/slice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "checkpoint/dtype.h"
#include "core/error.h"

namespace ridgeline::checkpoint {
namespace {

using spec::Box;

// Row-major distance between neighbours along each dimension of a box.
std::vector<int64_t> strides_of(const Box& box) {
  std::vector<int64_t> strides(box.extent.size(), 1);
  for (size_t dim = strides.size(); dim-- > 1;) strides[dim - 1] = strides[dim] * box.extent[dim];
  return strides;
}

// Row-major number, within `box`, of the first element of `part`, which lies inside `box`.
int64_t position_in(const Box& box, const std::vector<int64_t>& strides, const Box& part) {
  int64_t position = 0;
  for (size_t dim = 0; dim < strides.size(); ++dim) position += (part.offset[dim] - box.offset[dim]) * strides[dim];
  return position;
}

// Cuts the row-major elements [begin, end) of `box` in boxes. `box` shrinks from the left: dimensions before `dim` are
// already fixed to one index.
void cut_range(const Box& box, size_t dim, int64_t begin, int64_t end, std::vector<Box>& parts) {
  if (begin >= end) return;
  int64_t row = 1;
  for (size_t inner = dim + 1; inner < box.extent.size(); ++inner) row *= box.extent[inner];
  auto rows = [&](int64_t first, int64_t last) {
    Box part = box;
    part.offset[dim] += first;
    part.extent[dim] = last - first;
    return part;
  };
  const int64_t first_row = begin / row;
  const int64_t last_row = (end - 1) / row;
  if (begin % row == 0 && end % row == 0) {
    parts.push_back(rows(first_row, last_row + 1));
    return;
  }
  if (first_row == last_row) {
    cut_range(rows(first_row, first_row + 1), dim + 1, begin - first_row * row, end - first_row * row, parts);
    return;
  }
  // A head that starts inside a row, whole rows, a tail that ends inside a row.
  const int64_t middle_begin = begin % row == 0 ? first_row : first_row + 1;
  const int64_t middle_end = end / row;
  if (begin % row != 0) cut_range(rows(first_row, first_row + 1), dim + 1, begin % row, row, parts);
  if (middle_begin < middle_end) parts.push_back(rows(middle_begin, middle_end));
  if (end % row != 0) cut_range(rows(last_row, last_row + 1), dim + 1, 0, end % row, parts);
}

// How many trailing dimensions of `part` are contiguous in `box`, counting the first that is cut: the length of a run
// is the product of their extents.
size_t run_dimensions(const Box& part, const Box& box) {
  size_t count = 0;
  const size_t dimensions = part.extent.size();
  while (count < dimensions) {
    ++count;
    const size_t dim = dimensions - count;
    if (part.extent[dim] != box.extent[dim]) break;
  }
  return count;
}

struct Side {
  const Slice& slice;
  std::vector<int64_t> strides;
};

void copy_box(const Box& part, const Side& from, const std::byte* source, const Side& to, std::byte* destination,
              int64_t element_bytes) {
  const size_t dimensions = part.extent.size();
  const size_t outer = dimensions - std::min(run_dimensions(part, from.slice.box), run_dimensions(part, to.slice.box));
  int64_t run = 1;
  for (size_t dim = outer; dim < dimensions; ++dim) run *= part.extent[dim];
  int64_t read = position_in(from.slice.box, from.strides, part) - from.slice.range.begin;
  int64_t write = position_in(to.slice.box, to.strides, part) - to.slice.range.begin;
  std::vector<int64_t> index(outer, 0);
  while (true) {
    std::memcpy(destination + write * element_bytes, source + read * element_bytes, run * element_bytes);
    size_t dim = outer;
    while (dim-- > 0) {
      read += from.strides[dim];
      write += to.strides[dim];
      if (++index[dim] < part.extent[dim]) break;
      read -= from.strides[dim] * part.extent[dim];
      write -= to.strides[dim] * part.extent[dim];
      index[dim] = 0;
    }
    if (dim == static_cast<size_t>(-1)) return;
  }
}

int64_t elements_of(const Box& box) {
  int64_t product = 1;
  for (int64_t extent : box.extent) product *= extent;
  return product;
}

}  // namespace

Slice whole_slice(const std::vector<int64_t>& shape) {
  return box_slice({std::vector<int64_t>(shape.size(), 0), shape});
}

Slice box_slice(const Box& box) { return {box, {0, elements_of(box)}}; }

std::optional<std::string> find_fault(const Slice& slice, const std::vector<int64_t>& shape) {
  const Box& box = slice.box;
  if (box.offset.size() != shape.size() || box.extent.size() != shape.size()) {
    return fmt::format("its box has {} offsets and {} extents where the tensor {} has {} dimensions", box.offset.size(),
                       box.extent.size(), shape_text(shape), shape.size());
  }
  if (!checked_elements(shape)) return fmt::format("shape {} is negative or too large", shape_text(shape));
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    const int64_t offset = box.offset[dim];
    const int64_t extent = box.extent[dim];
    if (offset < 0 || extent < 0 || offset > shape[dim] || extent > shape[dim] - offset) {
      return fmt::format("its box covers {} elements from {} in dimension {} of the tensor {}", extent, offset, dim,
                         shape_text(shape));
    }
  }
  const int64_t elements = elements_of(box);
  if (slice.range.begin < 0 || slice.range.end < slice.range.begin || slice.range.end > elements) {
    return fmt::format("its range {}..{} is not inside the {} elements of its box", slice.range.begin, slice.range.end,
                       elements);
  }
  return std::nullopt;
}

std::vector<Box> boxes_of(const Slice& slice) {
  std::vector<Box> parts;
  if (slice.elements() <= 0) return parts;
  if (slice.box.extent.empty()) return {slice.box};
  cut_range(slice.box, 0, slice.range.begin, slice.range.end, parts);
  return parts;
}

std::optional<Box> intersect(const Box& left, const Box& right) {
  Box common;
  common.offset.reserve(left.offset.size());
  common.extent.reserve(left.offset.size());
  for (size_t dim = 0; dim < left.offset.size(); ++dim) {
    const int64_t begin = std::max(left.offset[dim], right.offset[dim]);
    const int64_t end = std::min(left.offset[dim] + left.extent[dim], right.offset[dim] + right.extent[dim]);
    if (begin >= end) return std::nullopt;
    common.offset.push_back(begin);
    common.extent.push_back(end - begin);
  }
  return common;
}

int64_t copy_slice(const Slice& source, std::span<const std::byte> source_bytes, const Slice& destination,
                   std::span<std::byte> destination_bytes, int64_t element_bytes) {
  RIDGELINE_ASSERT(source.box.offset.size() == destination.box.offset.size());
  RIDGELINE_ASSERT(static_cast<int64_t>(source_bytes.size()) == source.elements() * element_bytes);
  RIDGELINE_ASSERT(static_cast<int64_t>(destination_bytes.size()) == destination.elements() * element_bytes);
  if (source.elements() == 0 || destination.elements() == 0) return 0;
  if (!intersect(source.box, destination.box)) return 0;
  const Side from{source, strides_of(source.box)};
  const Side to{destination, strides_of(destination.box)};
  const std::vector<Box> wanted = boxes_of(destination);
  int64_t copied = 0;
  for (const Box& held : boxes_of(source)) {
    for (const Box& want : wanted) {
      std::optional<Box> common = intersect(held, want);
      if (!common) continue;
      copy_box(*common, from, source_bytes.data(), to, destination_bytes.data(), element_bytes);
      copied += elements_of(*common);
    }
  }
  return copied;
}

std::string to_string(const Slice& slice) {
  std::string text = "[";
  for (size_t dim = 0; dim < slice.box.offset.size(); ++dim) {
    const int64_t offset = slice.box.offset[dim];
    text += fmt::format("{}{}:{}", dim == 0 ? "" : ", ", offset, offset + slice.box.extent[dim]);
  }
  text += "]";
  if (slice.range != spec::Range{0, elements_of(slice.box)}) {
    text += fmt::format(" elements {}..{}", slice.range.begin, slice.range.end);
  }
  return text;
}

}  // namespace ridgeline::checkpoint
