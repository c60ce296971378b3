#include "spec/flat_layout.h"

#include <gtest/gtest.h>

#include <map>

namespace ridgeline::spec {
namespace {

struct Case {
  int64_t tensor, data, pipeline;
  bool sequence_parallel, tied;
  double bucket_mib;
  int64_t chunks = 1;
};

class FlatLayoutTest : public testing::TestWithParam<Case> {};

TEST_P(FlatLayoutTest, HoldsEveryParameterOfTheStageOnceInItsOwnKindOfBucket) {
  const Case& c = GetParam();
  ModelSpec model;
  model.tied = c.tied;
  Strategy strategy;
  strategy.tensor = c.tensor;
  strategy.sequence_parallel = c.sequence_parallel;
  const auto parameters = declare_parameters(model, strategy);
  // Chunks go round the stages.
  std::vector<StageUnits> stages(c.pipeline);
  for (int64_t g = 0; g < c.pipeline * c.chunks; ++g) {
    stages[g % c.pipeline].push_back(split_range(unit_count(model), c.pipeline * c.chunks, g));
  }
  std::map<int64_t, int> seen;
  for (int64_t s = 0; s < c.pipeline; ++s) {
    const FlatLayout layout = make_flat_layout(parameters, stages, s, c.tensor, c.tensor - 1, c.data, c.bucket_mib);
    int64_t next = 0;
    for (const FlatBucket& bucket : layout.buckets) {
      EXPECT_EQ(bucket.range.begin, next);
      EXPECT_EQ(bucket.range.size() % c.data, 0);
      next = bucket.range.end;
      EXPECT_EQ(layout.owned(bucket, 0).begin, bucket.range.begin);
      EXPECT_EQ(layout.owned(bucket, c.data - 1).end, bucket.range.end);
    }
    EXPECT_EQ(next, layout.elements);
    int64_t last_end = 0;
    for (const FlatEntry& entry : layout.entries) {
      ++seen[entry.parameter];
      const ParameterSpec& parameter = parameters[entry.parameter];
      const FlatBucket& bucket = layout.buckets[entry.bucket];
      EXPECT_GE(entry.range.begin, last_end);
      last_end = entry.range.end;
      EXPECT_EQ(entry.range.size(), entry.box.elements());
      EXPECT_GE(entry.range.begin, bucket.range.begin);
      EXPECT_LE(entry.range.end, bucket.range.end);
      EXPECT_EQ(bucket.tensor_partial, c.tensor > 1 && parameter.gradient.is_partial());
      EXPECT_EQ(bucket.tied, is_tied(parameter, stages));
      EXPECT_LE(bucket.first_unit, parameter.units.back());
    }
  }
  for (size_t index = 0; index < parameters.size(); ++index) {
    EXPECT_EQ(seen[index], is_tied(parameters[index], stages) ? 2 : 1) << parameters[index].name;
  }
}

// By units: groups are contiguous, of one set of units; their places in the working buffer are disjoint wherever two
// can be at work, or one at work and the next on its way.
TEST_P(FlatLayoutTest, ByUnitsGivesNeighboursPlacesOfTheirOwn) {
  const Case& c = GetParam();
  ModelSpec model;
  model.tied = c.tied;
  Strategy strategy;
  strategy.tensor = c.tensor;
  strategy.sequence_parallel = c.sequence_parallel;
  const auto parameters = declare_parameters(model, strategy);
  std::vector<Range> stages;
  for (int64_t s = 0; s < c.pipeline; ++s) stages.push_back(split_range(unit_count(model), c.pipeline, s));
  for (int64_t s = 0; s < c.pipeline; ++s) {
    const FlatLayout layout =
        make_flat_layout(parameters, one_chunk_stages(stages), s, c.tensor, 0, c.data, c.bucket_mib, true);
    int64_t next = 0;
    std::map<int64_t, std::vector<Range>> places;  // by unit
    for (const FlatGroup& group : layout.groups) {
      EXPECT_EQ(group.range.begin, next);
      next = group.range.end;
      EXPECT_LE(group.range.size(), layout.slots[group.slot].size());
      for (int64_t b = group.buckets.begin; b < group.buckets.end; ++b) {
        const FlatBucket& bucket = layout.buckets[b];
        EXPECT_EQ(&layout.groups[bucket.group], &group);
        EXPECT_EQ(bucket.range.size() % c.data, 0);
        const int64_t begin = layout.working_begin(bucket);
        EXPECT_LE(begin + bucket.range.size(), layout.working_elements());
        for (const int64_t unit : group.units) places[unit].push_back({begin, begin + bucket.range.size()});
      }
    }
    EXPECT_EQ(next, layout.elements);
    for (const FlatEntry& entry : layout.entries) {
      std::vector<int64_t> here;
      for (const int64_t unit : parameters[entry.parameter].units) {
        if (unit >= stages[s].begin && unit < stages[s].end) here.push_back(unit);
      }
      EXPECT_EQ(layout.groups[layout.buckets[entry.bucket].group].units, here) << parameters[entry.parameter].name;
    }
    for (int64_t unit = stages[s].begin; unit + 1 < stages[s].end; ++unit) {
      for (const Range& mine : places[unit]) {
        for (const Range& other : places[unit + 1]) {
          const bool shared = mine == other && layout.slots.size() > 2 && mine.begin >= layout.slots[2].begin;
          EXPECT_TRUE(shared || intersection(mine, other).size() == 0) << "units " << unit << " and " << unit + 1;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, FlatLayoutTest,
                         testing::Values(Case{1, 1, 1, false, true, 25}, Case{2, 2, 1, false, true, 0.1},
                                         Case{2, 3, 2, true, true, 0.1}, Case{4, 4, 3, true, false, 1e-9},
                                         Case{1, 8, 2, false, true, 25}, Case{2, 2, 2, true, true, 0.1, 2},
                                         Case{1, 2, 1, false, true, 0.1, 3}));

}  // namespace
}  // namespace ridgeline::spec
