#include "schedule/partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "core/error.h"

namespace ridgeline::schedule {
namespace {

double work_of(const std::vector<double>& work, const spec::Range& range) {
  double sum = 0.0;
  for (int64_t unit = range.begin; unit < range.end; ++unit) sum += work[unit];
  return sum;
}

struct Quality {
  double fullest = 0.0;
  double squares = 0.0;
};

Quality quality(const std::vector<double>& work, const std::vector<spec::Range>& ranges) {
  Quality result;
  for (const spec::Range& range : ranges) {
    const double sum = work_of(work, range);
    result.fullest = std::max(result.fullest, sum);
    result.squares += sum * sum;
  }
  return result;
}

// All ways to write `layers` as `stages` positive numbers.
void for_all_cuts(int64_t layers, int64_t stages, std::vector<int64_t>& counts,
                  const std::function<void(const std::vector<int64_t>&)>& body) {
  if (stages == 1) {
    counts.push_back(layers);
    body(counts);
    counts.pop_back();
    return;
  }
  for (int64_t first = 1; first + stages - 1 <= layers; ++first) {
    counts.push_back(first);
    for_all_cuts(layers - first, stages - 1, counts, body);
    counts.pop_back();
  }
}

Quality best_by_brute_force(const std::vector<double>& work, int64_t stages) {
  Quality best{1e300, 1e300};
  std::vector<int64_t> counts;
  for_all_cuts(static_cast<int64_t>(work.size()) - 2, stages, counts, [&](const std::vector<int64_t>& stage_layers) {
    const Quality found = quality(work, partition_explicit(stage_layers));
    const double slack = 1e-9;
    if (found.fullest < best.fullest - slack ||
        (found.fullest < best.fullest + slack && found.squares < best.squares)) {
      best = found;
    }
  });
  return best;
}

void expect_partition(const std::vector<spec::Range>& ranges, int64_t layers, int64_t stages) {
  ASSERT_EQ(static_cast<int64_t>(ranges.size()), stages);
  EXPECT_EQ(ranges.back().end, layers + 2);
  for (int64_t stage = 0; stage < stages; ++stage) {
    EXPECT_EQ(ranges[stage].begin, stage > 0 ? ranges[stage - 1].end : 0);
    const int64_t first_layer = std::max<int64_t>(ranges[stage].begin, 1);
    const int64_t end_layer = std::min(ranges[stage].end, layers + 1);
    EXPECT_GE(end_layer - first_layer, 1) << "stage " << stage << " holds no layer";
  }
}

TEST(Partition, IsCompleteDisjointAndOrdered) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> some(0.0, 3.0);
  for (int64_t layers = 1; layers <= 40; ++layers) {
    for (int64_t stages = 1; stages <= std::min<int64_t>(layers, 16); ++stages) {
      SCOPED_TRACE(testing::Message() << layers << " layers, " << stages << " stages");
      std::vector<double> work(layers + 2, 1.0);
      work.front() = 0.0;
      work.back() = some(random) * 4.0;
      expect_partition(partition_units(work, stages), layers, stages);
      for (double& unit : work) unit = some(random);
      expect_partition(partition_units(work, stages), layers, stages);
    }
  }
}

TEST(Partition, IsOptimal) {
  std::mt19937 random(11);
  std::uniform_int_distribution<int> some(0, 9);
  for (int64_t layers = 1; layers <= 9; ++layers) {
    for (int64_t stages = 1; stages <= layers; ++stages) {
      for (int trial = 0; trial < 12; ++trial) {
        std::vector<double> work(layers + 2);
        // Whole numbers tie often, fractions seldom; equal layers with a heavy head are the usual case.
        for (double& unit : work) unit = some(random) * (trial % 3 == 1 ? 0.37 : 1.0);
        if (trial % 3 == 2) std::fill(work.begin() + 1, work.end() - 1, 2.0);
        const Quality best = best_by_brute_force(work, stages);
        const Quality found = quality(work, partition_units(work, stages));
        EXPECT_NEAR(found.fullest, best.fullest, 1e-9) << layers << " layers, " << stages << " stages";
        EXPECT_NEAR(found.squares, best.squares, 1e-9) << layers << " layers, " << stages << " stages";
      }
    }
  }
}

// The earliest stages keep the most micro-batches in flight, so what does not divide goes to the end.
TEST(Partition, GivesEqualLayersToTheLastStagesFirst) {
  std::vector<double> work(12, 1.0);
  work.front() = work.back() = 0.0;
  const std::vector<spec::Range> expected = {{0, 3}, {3, 5}, {5, 8}, {8, 12}};
  EXPECT_EQ(partition_units(work, 4), expected);
}

TEST(Partition, RelievesTheStageOfAHeavyHead) {
  std::vector<double> work(10, 1.0);
  work.front() = 0.0;
  work.back() = 2.0;
  const std::vector<spec::Range> expected = {{0, 6}, {6, 10}};  // 5 layers; 3 layers and the head
  EXPECT_EQ(partition_units(work, 2), expected);
}

TEST(Partition, OfAThousandLayersIsExactToo) {
  std::vector<double> work(1002, 1.0);
  work.front() = 0.0;
  const std::vector<spec::Range> ranges = partition_units(work, 100);
  expect_partition(ranges, 1000, 100);
  EXPECT_EQ(quality(work, ranges).fullest, 11.0);  // 1001 units of work on 100 stages
}

std::vector<int64_t> layers_of(const std::vector<spec::Range>& ranges) {
  std::vector<int64_t> counts;
  for (const spec::Range& range : ranges) counts.push_back(range.size());
  counts.front() -= 1;
  counts.back() -= 1;
  return counts;
}

// Among equals the one with fewest layers in the first stage, then in the second, and so on.
TEST(Partition, OfEqualLayersIsTheFirstOfTheBest) {
  for (int64_t layers = 1; layers <= 10; ++layers) {
    for (int64_t stages = 1; stages <= layers; ++stages) {
      for (const double head : {0.0, 0.5, 1.0, 2.0, 3.7}) {
        std::vector<double> work(layers + 2, 1.0);
        work.front() = 0.25;
        work.back() = head;
        const Quality best = best_by_brute_force(work, stages);
        std::vector<int64_t> first, counts;
        for_all_cuts(layers, stages, counts, [&](const std::vector<int64_t>& cut) {
          const Quality found = quality(work, partition_explicit(cut));
          const bool ties = found.fullest < best.fullest + 1e-9 && found.squares < best.squares + 1e-9;
          if (ties && (first.empty() || cut < first)) first = cut;
        });
        EXPECT_EQ(layers_of(partition_units(work, stages)), first) << stages << " stages, head " << head;
      }
    }
  }
}

// The most that a config may ask for.
TEST(Partition, OfAHundredThousandEqualLayers) {
  std::vector<double> work(100'002, 1.0);
  work.front() = 0.0;
  work.back() = 2.0;
  std::vector<int64_t> expected(50'000, 2);
  expected.back() = 1;                // beside the head
  expected[expected.size() - 2] = 3;  // the layer that this leaves
  EXPECT_EQ(layers_of(partition_units(work, 50'000)), expected);
  expect_partition(partition_units(work, 100'000), 100'000, 100'000);
  expect_partition(partition_units(work, 1), 100'000, 1);
}

TEST(Partition, OfAHundredThousandUnequalLayersHasTheLeastFullestStage) {
  std::vector<double> work(100'002);
  for (size_t unit = 1; unit + 1 < work.size(); ++unit) work[unit] = unit % 2 == 0 ? 3.0 : 1.0;
  for (const int64_t stages : {1, 2, 100, 50'000, 100'000}) {
    const std::vector<spec::Range> ranges = partition_units(work, stages);
    expect_partition(ranges, 100'000, stages);
    EXPECT_EQ(quality(work, ranges).fullest, stages == 100'000 ? 3.0 : 200'000.0 / stages) << stages << " stages";
  }
}

TEST(Partition, OfManyUnequalLayersFitsNoLowerLimit) {
  std::mt19937 random(5);
  std::uniform_int_distribution<int> some(1, 50);
  std::vector<double> work(3'002);
  for (double& unit : work) unit = some(random);
  const std::vector<spec::Range> ranges = partition_units(work, 40);
  expect_partition(ranges, 3'000, 40);
  // No cut fits a limit below the fullest: filling greedily from the front needs more stages.
  const double limit = quality(work, ranges).fullest - 0.5;
  work[1] += work.front();
  work[3'000] += work.back();
  int64_t stages = 1;
  double load = 0.0;
  for (size_t layer = 1; layer <= 3'000; ++layer) {
    if (load + work[layer] > limit) {
      ++stages;
      load = 0.0;
    }
    load += work[layer];
  }
  EXPECT_GT(stages, 40);
}

TEST(Partition, ExplicitFollowsTheList) {
  const std::vector<spec::Range> expected = {{0, 3}, {3, 4}, {4, 8}};
  EXPECT_EQ(partition_explicit({2, 1, 3}), expected);
  EXPECT_THROW(partition_explicit({2, 0, 3}), InputError);
  EXPECT_THROW(partition_explicit({}), InputError);
}

TEST(Partition, RefusesMoreStagesThanLayers) {
  EXPECT_THROW(partition_units(std::vector<double>(6, 1.0), 5), InputError);
  EXPECT_THROW(partition_units(std::vector<double>(6, 1.0), 0), InputError);
}

}  // namespace
}  // namespace ridgeline::schedule
