#include "checkpoint/coverage.h"

#include <algorithm>

namespace ridgeline::checkpoint {
namespace {

using spec::Box;

// Appends to `rest` what is left of `box` without `hole`, which lies inside it: at most two slabs a dimension.
void subtract(Box box, const Box& hole, std::vector<Box>& rest) {
  for (size_t dim = 0; dim < box.offset.size(); ++dim) {
    const int64_t before = hole.offset[dim] - box.offset[dim];
    if (before > 0) {
      Box slab = box;
      slab.extent[dim] = before;
      rest.push_back(std::move(slab));
    }
    const int64_t hole_end = hole.offset[dim] + hole.extent[dim];
    const int64_t after = box.offset[dim] + box.extent[dim] - hole_end;
    if (after > 0) {
      Box slab = box;
      slab.offset[dim] = hole_end;
      slab.extent[dim] = after;
      rest.push_back(std::move(slab));
    }
    box.offset[dim] = hole.offset[dim];
    box.extent[dim] = hole.extent[dim];
  }
}

std::vector<Box> sorted_boxes(std::span<const Slice> pieces) {
  std::vector<Box> boxes;
  for (const Slice& piece : pieces) {
    std::vector<Box> parts = boxes_of(piece);
    boxes.insert(boxes.end(), parts.begin(), parts.end());
  }
  std::sort(boxes.begin(), boxes.end(), [](const Box& left, const Box& right) { return left.offset < right.offset; });
  return boxes;
}

}  // namespace

std::optional<Box> first_gap(const Slice& wanted, std::span<const Slice> pieces) {
  std::vector<Box> missing = boxes_of(wanted);
  // In the order of their offsets regular shards nibble `missing` from one side, so that it stays short.
  for (const Box& box : sorted_boxes(pieces)) {
    if (missing.empty()) break;
    std::vector<Box> rest;
    for (Box& part : missing) {
      if (std::optional<Box> hole = intersect(part, box)) {
        subtract(std::move(part), *hole, rest);
      } else {
        rest.push_back(std::move(part));
      }
    }
    missing = std::move(rest);
  }
  if (missing.empty()) return std::nullopt;
  return missing.front();
}

std::optional<Box> first_overlap(std::span<const Slice> pieces) {
  const std::vector<Box> boxes = sorted_boxes(pieces);
  for (size_t left = 0; left < boxes.size(); ++left) {
    for (size_t right = left + 1; right < boxes.size(); ++right) {
      // Sorted by the first offset: nothing later can reach back into this box.
      const bool scalar = boxes[left].offset.empty();
      if (!scalar && boxes[right].offset[0] >= boxes[left].offset[0] + boxes[left].extent[0]) break;
      if (std::optional<Box> common = intersect(boxes[left], boxes[right])) return common;
    }
  }
  return std::nullopt;
}

}  // namespace ridgeline::checkpoint
