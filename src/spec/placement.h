// Placement: how a tensor lies on one axis of the mesh. Layout rules are declared with these and nowhere written by hand:
// the slice of the initial values, gradient reductions, weights in the global norm, checkpoint slices and the bytes that
// the cost room counts all follow from them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ridgeline::spec {

// "axis" always means an axis of the mesh, "dim" always a dimension of a tensor.
enum class Axis { pipeline, data, context, tensor };

struct Placement {
  enum class Kind { replicate, shard, partial };
  Kind kind = Kind::replicate;
  int64_t dim = 0;  // for shard

  static Placement replicate() { return {Kind::replicate, 0}; }
  static Placement shard(int64_t dim) { return {Kind::shard, dim}; }
  static Placement partial() { return {Kind::partial, 0}; }  // the value is the sum over the axis
  bool is_shard() const { return kind == Kind::shard; }
  bool is_replicate() const { return kind == Kind::replicate; }
  bool is_partial() const { return kind == Kind::partial; }
  bool operator==(const Placement&) const = default;
};
std::string to_string(const Placement& placement);

// Half-open range.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

// What both hold; where that is nothing, an empty range at the larger begin.
Range intersection(const Range& a, const Range& b);

// Part `index` of `total` cut in `parts` whose sizes differ by at most one, larger ones first. For all sizes the parts
// are complete, disjoint and ordered.
Range split_range(int64_t total, int64_t parts, int64_t index);

// A rectangular piece of a global tensor.
struct Box {
  std::vector<int64_t> offset;
  std::vector<int64_t> extent;
  int64_t elements() const;
  bool operator==(const Box&) const = default;
};

// The box that coordinate `index` of an axis with `size` ranks holds of a tensor of `shape`.
Box local_box(const std::vector<int64_t>& shape, const Placement& placement, int64_t size, int64_t index);

// Placement of a parameter's gradient as one rank's backward leaves it, on an axis where the parameter lies as `value`
// and the activations that it acts on lie as `acts_on`: sharded parameters get sharded gradients; a replicated parameter
// that acts on a shard of the activations sees only its share of the sum (partial), on replicated activations all of it.
// Throws InternalError for combinations that are not a gradient (partial values).
Placement gradient_placement(const Placement& value, const Placement& acts_on);

}  // namespace ridgeline::spec
