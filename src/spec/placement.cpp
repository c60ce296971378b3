#include "spec/placement.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/error.h"

namespace ridgeline::spec {

std::string to_string(const Placement& placement) {
  switch (placement.kind) {
    case Placement::Kind::replicate:
      return "replicate";
    case Placement::Kind::shard:
      return fmt::format("shard({})", placement.dim);
    case Placement::Kind::partial:
      return "partial";
  }
  throw InternalError("unknown placement");
}

Range intersection(const Range& a, const Range& b) {
  const int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

Range split_range(int64_t total, int64_t parts, int64_t index) {
  RIDGELINE_ASSERT(total >= 0 && parts > 0 && index >= 0 && index < parts);
  const int64_t base = total / parts;
  const int64_t larger = total % parts;  // the first `larger` parts hold one more
  const int64_t begin = index * base + std::min(index, larger);
  return {begin, begin + base + (index < larger ? 1 : 0)};
}

int64_t Box::elements() const {
  return std::accumulate(extent.begin(), extent.end(), int64_t{1}, std::multiplies<>());
}

Box local_box(const std::vector<int64_t>& shape, const Placement& placement, int64_t size, int64_t index) {
  RIDGELINE_ASSERT(!placement.is_partial());
  Box box{std::vector<int64_t>(shape.size(), 0), shape};
  if (placement.is_shard()) {
    RIDGELINE_ASSERT(placement.dim >= 0 && placement.dim < static_cast<int64_t>(shape.size()));
    const Range range = split_range(shape[placement.dim], size, index);
    box.offset[placement.dim] = range.begin;
    box.extent[placement.dim] = range.size();
  }
  return box;
}

Placement gradient_placement(const Placement& value, const Placement& acts_on) {
  RIDGELINE_ASSERT(!value.is_partial() && !acts_on.is_partial());
  if (value.is_shard()) return value;
  return acts_on.is_shard() ? Placement::partial() : Placement::replicate();
}

}  // namespace ridgeline::spec
