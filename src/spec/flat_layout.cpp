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
  int64_t unit;  // the lowest unit of this stage that uses it: its gradient is final after that unit's backward
};

std::vector<Candidate> candidates(const std::vector<ParameterSpec>& parameters, const std::vector<Range>& stages,
                                  int64_t stage, int64_t tensor_size) {
  std::vector<Candidate> list;
  for (int64_t index = 0; index < static_cast<int64_t>(parameters.size()); ++index) {
    const ParameterSpec& parameter = parameters[index];
    if (!in_stage(parameter, stages[stage])) continue;
    int64_t lowest = stages[stage].end;
    for (int64_t unit : parameter.units) {
      if (unit >= stages[stage].begin && unit < stages[stage].end) lowest = std::min(lowest, unit);
    }
    list.push_back({index, is_tied(parameter, stages), tensor_size > 1 && parameter.gradient.is_partial(), lowest});
  }
  // Plain ones first, each kind together, in the order in which backward finishes them.
  std::stable_sort(list.begin(), list.end(), [](const Candidate& a, const Candidate& b) {
    return std::make_tuple(a.tied, a.tensor_partial, -a.unit) < std::make_tuple(b.tied, b.tensor_partial, -b.unit);
  });
  return list;
}

}  // namespace

bool in_stage(const ParameterSpec& parameter, const Range& stage) {
  return std::any_of(parameter.units.begin(), parameter.units.end(),
                     [&](int64_t unit) { return unit >= stage.begin && unit < stage.end; });
}

bool is_tied(const ParameterSpec& parameter, const std::vector<Range>& stages) {
  return std::count_if(stages.begin(), stages.end(), [&](const Range& stage) { return in_stage(parameter, stage); }) > 1;
}

Range FlatLayout::owned(const FlatBucket& bucket, int64_t data_index) const {
  const int64_t part = bucket.range.size() / data_size;
  return {bucket.range.begin + part * data_index, bucket.range.begin + part * (data_index + 1)};
}

FlatLayout make_flat_layout(const std::vector<ParameterSpec>& parameters, const std::vector<Range>& stages, int64_t stage,
                            int64_t tensor_size, int64_t tensor_index, int64_t data_size, double bucket_mib) {
  RIDGELINE_ASSERT(stage >= 0 && stage < static_cast<int64_t>(stages.size()));
  const int64_t bucket_elements = std::max<int64_t>(1, static_cast<int64_t>(bucket_mib * 1024 * 1024 / 4));
  FlatLayout layout;
  layout.data_size = data_size;
  bool open = false;
  auto close = [&] {
    if (!open) return;
    FlatBucket& bucket = layout.buckets.back();
    bucket.range.end = bucket.range.begin + round_up(layout.elements - bucket.range.begin, data_size * kAlignment);
    layout.elements = bucket.range.end;
    open = false;
  };
  for (const Candidate& candidate : candidates(parameters, stages, stage, tensor_size)) {
    if (open) {
      const FlatBucket& bucket = layout.buckets.back();
      if (bucket.tied != candidate.tied || bucket.tensor_partial != candidate.tensor_partial ||
          layout.elements - bucket.range.begin >= bucket_elements) {
        close();
      }
    }
    if (!open) {
      layout.buckets.push_back({{layout.elements, layout.elements}, candidate.tensor_partial, candidate.tied, candidate.unit});
      open = true;
    }
    const ParameterSpec& parameter = parameters[candidate.parameter];
    Box box = local_box(parameter.shape, parameter.value, tensor_size, tensor_index);
    const Range range{layout.elements, layout.elements + box.elements()};
    layout.entries.push_back({candidate.parameter, std::move(box), range, static_cast<int64_t>(layout.buckets.size()) - 1});
    layout.buckets.back().first_unit = std::min(layout.buckets.back().first_unit, candidate.unit);
    layout.elements = round_up(range.end, kAlignment);
  }
  close();
  return layout;
}

}  // namespace ridgeline::spec
