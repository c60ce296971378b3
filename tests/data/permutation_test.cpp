#include "data/permutation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include "core/error.h"

namespace ridgeline::data {
namespace {

std::vector<int64_t> all_of(const Permutation& order) {
  std::vector<int64_t> values(static_cast<size_t>(order.size()));
  for (int64_t i = 0; i < order.size(); ++i) values[static_cast<size_t>(i)] = order(i);
  return values;
}

void expect_bijection(int64_t n, uint64_t seed) {
  std::vector<bool> seen(static_cast<size_t>(n));
  for (const auto value : all_of(Permutation(n, seed))) {
    ASSERT_TRUE(value >= 0 && value < n) << "n " << n;
    ASSERT_FALSE(seen[static_cast<size_t>(value)]) << "n " << n << ": " << value << " twice";
    seen[static_cast<size_t>(value)] = true;
  }
}

TEST(Permutation, IsABijectionForEverySize) {
  for (int64_t n = 1; n <= 300; ++n) {
    for (uint64_t seed : {0, 1, 1234}) expect_bijection(n, seed);
  }
  for (int64_t n : {509, 512, 513, 997, 1000, 1024, 4095, 4096, 4097, 65521, 65536, 100'003}) expect_bijection(n, 7);
}

TEST(Permutation, WorksAtTheLargestSize) {
  const auto n = std::numeric_limits<int64_t>::max();
  const Permutation order(n, 42);
  std::set<int64_t> seen;
  for (int64_t i = 0; i < 1000; ++i) {
    const auto value = order(n - 1 - i);
    EXPECT_TRUE(value >= 0 && value < n);
    seen.insert(value);
  }
  EXPECT_EQ(seen.size(), 1000u);
}

TEST(Permutation, DiffersBySeedAndStream) {
  const auto base = all_of(Permutation(1000, 1, 0));
  EXPECT_EQ(base, all_of(Permutation(1000, 1, 0)));
  for (const auto& other : {Permutation(1000, 2, 0), Permutation(1000, 1, 1), Permutation(1000, 0, 1)}) {
    const auto values = all_of(other);
    int same = 0;
    for (size_t i = 0; i < values.size(); ++i) same += values[i] == base[i];
    EXPECT_LT(same, 20);  // 1 is expected of unrelated orders
  }
}

// The order is a promise to every run that is resumed: a change of these values breaks them all.
TEST(Permutation, ValuesNeverChange) {
  EXPECT_THAT(all_of(Permutation(10, 1234, 0)), testing::ElementsAre(3, 0, 1, 6, 4, 2, 8, 9, 7, 5));
  EXPECT_THAT(all_of(Permutation(10, 1234, 1)), testing::ElementsAre(5, 9, 0, 2, 1, 3, 7, 4, 6, 8));
  EXPECT_EQ(Permutation(1'000'000'007, 5)(123'456'789), 811571026);
}

// Chi-square of where each index goes, over seeds: 16 x 16 cells, 4,000 seeds. With 225 degrees of freedom the
// statistic has mean 225 and deviation 21; 350 is six deviations away.
TEST(Permutation, EveryIndexGoesEverywhereEquallyOften) {
  constexpr int64_t kSize = 16;
  constexpr int kSeeds = 4000;
  std::vector<int> counts(kSize * kSize);
  for (int seed = 0; seed < kSeeds; ++seed) {
    const Permutation order(kSize, static_cast<uint64_t>(seed));
    for (int64_t i = 0; i < kSize; ++i) ++counts[static_cast<size_t>(i * kSize + order(i))];
  }
  const double expected = static_cast<double>(kSeeds) / kSize;
  double chi_square = 0;
  for (const auto count : counts) chi_square += (count - expected) * (count - expected) / expected;
  EXPECT_LT(chi_square, 350);
  EXPECT_GT(chi_square, 120);
}

// Neighbours must not stay neighbours: the mean distance of two random numbers below n is n / 3.
TEST(Permutation, ScattersNeighbours) {
  constexpr int64_t kSize = 100'000;
  const Permutation order(kSize, 3);
  double distance = 0;
  for (int64_t i = 0; i + 1 < kSize; ++i) distance += std::abs(static_cast<double>(order(i + 1) - order(i)));
  EXPECT_NEAR(distance / kSize, kSize / 3.0, kSize * 0.01);
}

TEST(Permutation, RefusesAnIndexOutside) {
  const Permutation order(5, 1);
  EXPECT_THROW(order(5), InternalError);
  EXPECT_THROW(order(-1), InternalError);
  EXPECT_THROW(Permutation(0, 1), InternalError);
}

}  // namespace
}  // namespace ridgeline::data
