#include "core/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/cpu_target.h"

namespace ridgeline {
namespace {

std::vector<float> normals(uint64_t key, uint64_t first, size_t count, double std = 1.0) {
  std::vector<float> values(count);
  fill_normal(values, key, first, std);
  return values;
}

struct EachTarget : testing::TestWithParam<CpuTarget> {
  void SetUp() override {
    limit_cpu_target(GetParam());
    if (cpu_target() != GetParam()) GTEST_SKIP() << "this CPU lacks " << to_string(GetParam());
  }
  void TearDown() override { limit_cpu_target(CpuTarget::avx512); }
};
INSTANTIATE_TEST_SUITE_P(Random, EachTarget, testing::Values(CpuTarget::baseline, CpuTarget::avx2, CpuTarget::avx512),
                         [](const auto& info) { return std::string(to_string(info.param)); });

// Rows "philox4x32 10" of the file kat_vectors that Random123 publishes.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, 0), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffffffffffff),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomKey, DependsOnSeedAndNameAndStaysAsItIs) {
  EXPECT_NE(random_key(1, "a"), random_key(2, "a"));
  EXPECT_NE(random_key(1, "a"), random_key(1, "b"));
  EXPECT_EQ(random_key(1234, "layers.0.mlp.up.weight"), random_key(1234, "layers.0.mlp.up.weight"));
  EXPECT_EQ(random_key(1234, "layers.0.mlp.up.weight"), 0xd488efa95e2e6b92u)
      << "changing it changes every run's initial values";
}

// The definition in the header, written with the standard library.
TEST_P(EachTarget, NormalsFollowTheDefinition) {
  const uint64_t key = random_key(7, "weights");
  const uint64_t first = (uint64_t{5} << 35) + 3;
  const auto values = normals(key, first, 1000, 0.02);
  for (size_t i = 0; i < values.size(); ++i) {
    const uint64_t element = first + i;
    const uint64_t block = element / 32 * 8 + element % 8;
    const size_t k = element / 8 % 4;
    const PhiloxBlock random =
        philox4x32({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0, 0}, key);
    const double u = (random[k & 2] + 0.5) / 4294967296.0;
    const double v = (random[(k & 2) + 1] + 0.5) / 4294967296.0;
    const double turn = 2 * M_PI * v;
    const double expected = 0.02 * std::sqrt(-2 * std::log(u)) * (k % 2 == 0 ? std::cos(turn) : std::sin(turn));
    ASSERT_NEAR(values[i], expected, 2e-9) << i;
  }
}

TEST_P(EachTarget, NormalsHaveTheSameBitsOnEveryTarget) {
  const auto values = normals(99, 11, 10000);
  limit_cpu_target(CpuTarget::baseline);
  EXPECT_EQ(values, normals(99, 11, 10000));
}

TEST_P(EachTarget, NormalsDoNotDependOnTheSplit) {
  const auto whole = normals(3, 100, 517);
  for (const size_t cut : {1u, 7u, 28u, 32u, 64u, 333u, 516u}) {
    auto parts = normals(3, 100, cut);
    const auto rest = normals(3, 100 + cut, whole.size() - cut);
    parts.insert(parts.end(), rest.begin(), rest.end());
    EXPECT_EQ(parts, whole) << cut;
  }
}

TEST_P(EachTarget, NormalsHaveTheMomentsAndTailsOfANormal) {
  constexpr size_t count = 4'000'000;
  const auto values = normals(random_key(42, "moments"), 0, count);
  double moment[5] = {};
  double beyond2 = 0, beyond4 = 0;
  for (const float value : values) {
    double power = 1;
    for (double& sum : moment) sum += power, power *= value;
    beyond2 += std::abs(value) > 2;
    beyond4 += std::abs(value) > 4;
  }
  const double error = 1 / std::sqrt(static_cast<double>(count));  // of a mean with unit variance; five of it allowed
  EXPECT_NEAR(moment[1] / count, 0, 5 * error);
  EXPECT_NEAR(moment[2] / count, 1, 5 * error * std::sqrt(2.0));
  EXPECT_NEAR(moment[3] / count, 0, 5 * error * std::sqrt(15.0));
  EXPECT_NEAR(moment[4] / count, 3, 5 * error * std::sqrt(96.0));
  EXPECT_NEAR(beyond2 / count, 0.0455003, 5 * error * std::sqrt(0.0455));
  EXPECT_NEAR(beyond4 / count, 6.334e-5, 5 * error * std::sqrt(6.334e-5));
}

TEST(Normals, NeighboursAndStreamsAreUncorrelated) {
  constexpr size_t count = 1'000'000;
  const auto a = normals(random_key(1, "a"), 0, count + 40);
  const auto b = normals(random_key(1, "b"), 0, count);
  const double bound = 5 / std::sqrt(static_cast<double>(count));
  for (const size_t lag : {1u, 8u, 16u, 32u}) {
    EXPECT_LT(std::abs(std::inner_product(a.begin(), a.begin() + count, a.begin() + lag, 0.0)) / count, bound) << lag;
  }
  EXPECT_LT(std::abs(std::inner_product(b.begin(), b.end(), a.begin(), 0.0)) / count, bound);
}

TEST(NormalBox, IsTheSliceOfTheWholeTensor) {
  const std::vector<int64_t> shape = {5, 6, 7};
  const auto whole = normals(8, 0, 5 * 6 * 7, 0.5);
  const std::vector<std::pair<std::vector<int64_t>, std::vector<int64_t>>> boxes = {
      {{0, 0, 0}, {5, 6, 7}}, {{2, 0, 0}, {3, 6, 7}}, {{1, 2, 0}, {2, 3, 7}}, {{0, 0, 3}, {5, 6, 2}},
      {{4, 5, 6}, {1, 1, 1}}, {{1, 0, 0}, {0, 6, 7}}, {{0, 3, 0}, {5, 3, 7}}};
  for (const auto& [offset, extent] : boxes) {
    std::vector<float> expected;
    for (int64_t i = 0; i < extent[0]; ++i)
      for (int64_t j = 0; j < extent[1]; ++j)
        for (int64_t k = 0; k < extent[2]; ++k)
          expected.push_back(whole[((offset[0] + i) * 6 + offset[1] + j) * 7 + offset[2] + k]);
    std::vector<float> values(expected.size());
    fill_normal_box(values, 8, shape, offset, extent, 0.5);
    EXPECT_EQ(values, expected);
  }
}

TEST(Dropout, DropsTheWantedShareAndKeepsTheExpectation) {
  const DropoutRate rate(0.1);
  EXPECT_NEAR(rate.threshold / 65536.0, 0.1, 1.0 / 131072);
  EXPECT_FLOAT_EQ(rate.scale, 1 / (1 - rate.threshold / 65536.0));
  EXPECT_EQ(DropoutRate(0.0).scale, 1.0f);
  int64_t kept = 0;
  constexpr int64_t count = 400'000;
  for (int64_t i = 0; i < count; ++i) kept += dropout_keeps(rate, dropout_key(5, 9, 2), i / 8000, i / 80 % 100, i % 80);
  EXPECT_NEAR(static_cast<double>(kept) / count, 0.9, 5 * std::sqrt(0.09 / count));
}

TEST(Dropout, EveryCoordinateMatters) {
  const DropoutRate rate(0.5);
  const auto decisions = [&](uint64_t seed, int64_t step, int64_t site, int64_t sample, int64_t position) {
    std::vector<bool> bits;
    for (int64_t channel = 0; channel < 256; ++channel)
      bits.push_back(dropout_keeps(rate, dropout_key(seed, step, site), sample, position, channel));
    return bits;
  };
  const std::vector<std::vector<bool>> all = {decisions(1, 2, 3, 4, 5),
                                              decisions(2, 2, 3, 4, 5),
                                              decisions(1, 3, 3, 4, 5),
                                              decisions(1, 2, 4, 4, 5),
                                              decisions(1, 2, 3, 5, 5),
                                              decisions(1, 2, 3, 4, 6),
                                              decisions(1, 2, 3, 4 + (int64_t{1} << 32), 5)};
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      int64_t equal = 0;
      for (size_t bit = 0; bit < 256; ++bit) equal += all[i][bit] == all[j][bit];
      EXPECT_NEAR(equal, 128, 48) << i << " and " << j;  // six standard deviations
    }
}

}  // namespace
}  // namespace ridgeline
