// Slice: a piece of a global tensor, free of any layout of ranks.
//
// A slice is a box of the global tensor, and a half-open range of that box's elements counted in row-major order. The
// box says how tensor parallelism cut the tensor; the range says how flat buffers (ZeRO shards, reduction buckets) cut
// what was left, which happens at any element. The bytes of a slice are its elements in that order, with nothing
// between.
//
// Any two slices of the same tensor can be copied into each other; only what both hold is copied. All of loading a
// checkpoint into another layout is this one operation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "spec/placement.h"

namespace ridgeline::checkpoint {

struct Slice {
  spec::Box box;
  spec::Range range;  // of the box's row-major elements

  int64_t elements() const { return range.size(); }
  bool operator==(const Slice&) const = default;
};

Slice whole_slice(const std::vector<int64_t>& shape);
Slice box_slice(const spec::Box& box);  // all of the box

// What is wrong with `slice` as a slice of a tensor of `shape` (wrong rank, box or range out of bounds, overflow), or
// nothing. Every other function here needs slices that pass.
std::optional<std::string> find_fault(const Slice& slice, const std::vector<int64_t>& shape);

// The slice as disjoint boxes of the global tensor in the order of its elements: at most 2 * dimensions - 1 of them.
std::vector<spec::Box> boxes_of(const Slice& slice);

// The common part of two boxes, or nothing where it is empty.
std::optional<spec::Box> intersect(const spec::Box& left, const spec::Box& right);

// Copies the elements that both slices hold from `source` to `destination`; the rest of `destination` is left alone.
// Returns how many elements were copied. Runs that are contiguous in both are single memcpys.
// The spans must hold exactly the slices' elements of `element_bytes` each (InternalError otherwise).
int64_t copy_slice(const Slice& source, std::span<const std::byte> source_bytes, const Slice& destination,
                   std::span<std::byte> destination_bytes, int64_t element_bytes);

std::string to_string(const Slice& slice);  // "[0:4, 8:16] elements 3..20"

}  // namespace ridgeline::checkpoint
