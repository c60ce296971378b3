#include "spec/flat_layout.h"

#include <algorithm>
#include <tuple>

#include "core/error.h"

namespace ridgeline::spec {
namespace {

// 64 elements keep every parameter on a cache line, and on 128 bytes in two-byte precisions as accelerators like.
constexpr int64_t kAlignment = 64;

int64_t round_up(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

struct Candidate {
  int64_t parameter;
  bool tied;
  bool tensor_partial;
  bool experts;
  std::vector<int64_t>
      units;  // of this stage, that use it, ascending: its gradient is final after the first one's backward

  bool same_kind(const Candidate& other) const { return tied == other.tied && tensor_partial == other.tensor_partial && experts == other.experts; }
};

// Of boxes of one tensor that are cut along different dims.
Box intersection(const Box& a, const Box& b) {
  Box both = a;
  for (size_t dim = 0; dim < a.offset.size(); ++dim) {
    const Range range = spec::intersection({a.offset[dim], a.offset[dim] + a.extent[dim]},
                                           {b.offset[dim], b.offset[dim] + b.extent[dim]});
    both.offset[dim] = range.begin;
    both.extent[dim] = range.size();
  }
  return both;
}

bool holds(const StageUnits& stage, int64_t unit) {
  return std::any_of(stage.begin(), stage.end(),
                     [&](const Range& chunk) { return unit >= chunk.begin && unit < chunk.end; });
}

std::vector<Candidate> candidates(const std::vector<ParameterSpec>& parameters, const std::vector<StageUnits>& stages,
                                  int64_t stage, int64_t tensor_size, bool by_units) {
  std::vector<Candidate> list;
  for (int64_t index = 0; index < static_cast<int64_t>(parameters.size()); ++index) {
    const ParameterSpec& parameter = parameters[index];
    if (!in_stage(parameter, stages[stage])) continue;
    Candidate candidate{index, is_tied(parameter, stages), tensor_size > 1 && parameter.gradient.is_partial(),
                        parameter.is_expert(), {}};
    for (int64_t unit : parameter.units) {
      if (holds(stages[stage], unit)) candidate.units.push_back(unit);
    }
    std::sort(candidate.units.begin(), candidate.units.end());
    list.push_back(std::move(candidate));
  }
  // In the order in which backward finishes them. Each kind together: of a unit, or of the stage, plain ones first.
  std::stable_sort(list.begin(), list.end(), [by_units](const Candidate& a, const Candidate& b) {
    const auto kind = [](const Candidate& c) { return std::make_tuple(c.tied, c.tensor_partial, c.experts); };
    if (!by_units) return std::make_tuple(kind(a), -a.units[0]) < std::make_tuple(kind(b), -b.units[0]);
    return std::make_tuple(-a.units[0], a.units, kind(a)) < std::make_tuple(-b.units[0], b.units, kind(b));
  });
  return list;
}

// Lays parameters one after another and closes buckets.
class Builder {
 public:
  Builder(FlatLayout& layout, int64_t bucket_elements, int64_t shards, int64_t expert_shards)
      : layout_(layout), bucket_elements_(bucket_elements), shards_(shards), expert_shards_(expert_shards) {}

  // Whether `candidate` may join the open bucket.
  bool joins(const Candidate& candidate) const {
    if (last_ == nullptr || !last_->same_kind(candidate)) return false;
    if (layout_.by_units()) return last_->units == candidate.units;
    return layout_.elements - layout_.buckets.back().range.begin < bucket_elements_;
  }

  void add(const Candidate& candidate, Box box) {
    if (!joins(candidate)) open(candidate);
    FlatBucket& bucket = layout_.buckets.back();
    const Range range{layout_.elements, layout_.elements + box.elements()};
    layout_.entries.push_back(
        {candidate.parameter, std::move(box), range, static_cast<int64_t>(layout_.buckets.size()) - 1});
    bucket.first_unit = std::min(bucket.first_unit, candidate.units[0]);
    layout_.elements = round_up(range.end, kAlignment);
    last_ = &candidate;
  }

  void close() {
    if (last_ == nullptr) return;
    FlatBucket& bucket = layout_.buckets.back();
    bucket.range.end =
        bucket.range.begin + round_up(layout_.elements - bucket.range.begin, bucket.shards * kAlignment);
    layout_.elements = bucket.range.end;
    bucket.shard_begin = layout_.shard_elements;
    layout_.shard_elements += bucket.range.size() / bucket.shards;
    if (layout_.by_units()) layout_.groups.back().range.end = layout_.elements;
    last_ = nullptr;
  }

 private:
  void open(const Candidate& candidate) {
    const bool continues_group = last_ != nullptr && last_->units == candidate.units;
    close();
    const auto number = static_cast<int64_t>(layout_.buckets.size());
    FlatBucket bucket;
    bucket.range = {layout_.elements, layout_.elements};
    bucket.tensor_partial = candidate.tensor_partial;
    bucket.tied = candidate.tied;
    bucket.experts = candidate.experts;
    bucket.first_unit = candidate.units[0];
    bucket.shards = candidate.experts ? expert_shards_ : shards_;
    layout_.buckets.push_back(bucket);
    if (!layout_.by_units()) return;
    if (!continues_group) {
      layout_.groups.push_back({{layout_.elements, layout_.elements}, {number, number}, candidate.units});
    }
    layout_.groups.back().buckets.end = number + 1;
    layout_.buckets.back().group = static_cast<int64_t>(layout_.groups.size()) - 1;
  }

  FlatLayout& layout_;
  int64_t bucket_elements_, shards_, expert_shards_;
  const Candidate* last_ = nullptr;  // in the open bucket
};

// Two slots in which units next to each other in a chunk take turns, and one for each group of several units.
void place_slots(FlatLayout& layout, const StageUnits& stage) {
  std::vector<int64_t> sizes(2, 0);
  for (FlatGroup& group : layout.groups) {
    if (group.units.size() > 1) {
      group.slot = static_cast<int64_t>(sizes.size());
      sizes.push_back(0);
    } else {
      const int64_t unit = group.units[0];
      const auto chunk = std::find_if(stage.begin(), stage.end(), [&](const Range& range) { return unit < range.end; });
      group.slot = (unit - chunk->begin) % 2;
    }
    sizes[group.slot] = std::max(sizes[group.slot], group.range.size());
  }
  layout.slots.clear();
  int64_t next = 0;
  for (const int64_t size : sizes) {
    layout.slots.push_back({next, next + size});
    next += size;
  }
}

}  // namespace

std::vector<StageUnits> one_chunk_stages(const std::vector<Range>& stages) {
  std::vector<StageUnits> list;
  for (const Range& stage : stages) list.push_back({stage});
  return list;
}

bool in_stage(const ParameterSpec& parameter, const StageUnits& stage) {
  return std::any_of(parameter.units.begin(), parameter.units.end(), [&](int64_t unit) { return holds(stage, unit); });
}

bool is_tied(const ParameterSpec& parameter, const std::vector<StageUnits>& stages) {
  return std::count_if(stages.begin(), stages.end(),
                       [&](const StageUnits& stage) { return in_stage(parameter, stage); }) > 1;
}

Range FlatLayout::owned(const FlatBucket& bucket, int64_t shard) const {
  const int64_t part = bucket.range.size() / bucket.shards;
  return {bucket.range.begin + part * shard, bucket.range.begin + part * (shard + 1)};
}

int64_t FlatLayout::working_begin(const FlatBucket& bucket) const {
  const FlatGroup& group = groups[bucket.group];
  return slots[group.slot].begin + bucket.range.begin - group.range.begin;
}

FlatLayout make_flat_layout(const std::vector<ParameterSpec>& parameters, const std::vector<StageUnits>& stages,
                            int64_t stage, int64_t tensor_size, int64_t tensor_index, int64_t shards, double bucket_mib,
                            bool by_units, const ExpertCut& experts) {
  RIDGELINE_ASSERT(stage >= 0 && stage < static_cast<int64_t>(stages.size()));
  const int64_t bucket_elements = std::max<int64_t>(1, static_cast<int64_t>(bucket_mib * 1024 * 1024 / 4));
  FlatLayout layout;
  if (by_units) layout.slots.resize(2);
  Builder builder(layout, bucket_elements, shards, experts.shards);
  const std::vector<Candidate> list = candidates(parameters, stages, stage, tensor_size, by_units);
  for (const Candidate& candidate : list) {
    const ParameterSpec& parameter = parameters[candidate.parameter];
    Box box = local_box(parameter.shape, parameter.value, tensor_size, tensor_index);
    if (parameter.is_expert()) box = intersection(box, local_box(parameter.shape, parameter.expert, experts.size, experts.index));
    builder.add(candidate, std::move(box));
  }
  builder.close();
  if (by_units) place_slots(layout, stages[stage]);
  return layout;
}

FlatLayout make_flat_layout(const std::vector<ParameterSpec>& parameters, const std::vector<StageUnits>& stages,
                            int64_t stage, int64_t tensor_index, const Strategy& strategy, int64_t expert_index) {
  return make_flat_layout(parameters, stages, stage, strategy.tensor, tensor_index, strategy.shards(),
                          strategy.bucket_mib, strategy.shards_gradients(),
                          {strategy.expert, expert_index, strategy.expert_shards()});
}

}  // namespace ridgeline::spec
