#include "core/float_formats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/cpu_target.h"

namespace ridgeline {
namespace {

class FloatFormats : public testing::TestWithParam<CpuTarget> {
 protected:
  void SetUp() override {
    limit_cpu_target(GetParam());
    if (cpu_target() != GetParam()) GTEST_SKIP() << "this CPU lacks " << to_string(GetParam());
  }
  void TearDown() override { limit_cpu_target(CpuTarget::avx512); }
};

std::vector<float> decoded(FloatFormat format, const std::vector<uint16_t>& words) {
  std::vector<float> values(words.size());
  decode_floats(format, reinterpret_cast<const std::byte*>(words.data()), values.data(),
                static_cast<int64_t>(words.size()));
  return values;
}

std::vector<uint16_t> encoded(FloatFormat format, const std::vector<float>& values) {
  std::vector<uint16_t> words(values.size());
  encode_floats(format, values.data(), reinterpret_cast<std::byte*>(words.data()), static_cast<int64_t>(values.size()));
  return words;
}

TEST_P(FloatFormats, EveryNumberOfSixteenBitsComesBack) {
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  for (const FloatFormat format : {FloatFormat::bfloat16, FloatFormat::float16}) {
    const std::vector<float> values = decoded(format, all);
    const std::vector<uint16_t> again = encoded(format, values);
    for (size_t i = 0; i < all.size(); ++i) {
      if (std::isnan(values[i])) continue;
      ASSERT_EQ(again[i], all[i]) << i;
    }
  }
}

TEST_P(FloatFormats, KnownValuesAndRounding) {
  EXPECT_EQ(decoded(FloatFormat::float16, {0x3c00, 0xc000, 0x7bff, 0x0001, 0x7c00}),
            (std::vector<float>{1, -2, 65504, 0x1p-24f, std::numeric_limits<float>::infinity()}));
  EXPECT_EQ(decoded(FloatFormat::bfloat16, {0x3f80, 0xc000, 0x0080}), (std::vector<float>{1, -2, 0x1p-126f}));
  // Halfway goes to the even neighbour.
  EXPECT_EQ(encoded(FloatFormat::bfloat16, {1 + 0x1p-8f, 1 + 3 * 0x1p-8f}), (std::vector<uint16_t>{0x3f80, 0x3f82}));
  EXPECT_EQ(encoded(FloatFormat::float16, {1 + 0x1p-11f, 1 + 3 * 0x1p-11f}), (std::vector<uint16_t>{0x3c00, 0x3c02}));
}

// Rows of every length at odd addresses; nothing is written behind their end.
TEST_P(FloatFormats, AnyLengthAtAnyAddress) {
  for (const FloatFormat format : {FloatFormat::float32, FloatFormat::bfloat16, FloatFormat::float16}) {
    const int64_t size = float_bytes(format);
    for (int64_t count = 0; count < 40; ++count) {
      std::vector<float> values(static_cast<size_t>(count));
      for (int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(i - 7);
      std::vector<std::byte> bytes(static_cast<size_t>(count * size) + 8, std::byte{0x5a});
      encode_floats(format, values.data(), bytes.data() + 1, count);
      std::vector<float> again(static_cast<size_t>(count) + 1, -1000);
      decode_floats(format, bytes.data() + 1, again.data(), count);
      EXPECT_EQ(again.back(), -1000);
      again.pop_back();
      EXPECT_EQ(again, values);
      EXPECT_EQ(bytes.front(), std::byte{0x5a});
      for (size_t i = static_cast<size_t>(count * size) + 1; i < bytes.size(); ++i) EXPECT_EQ(bytes[i], std::byte{0x5a});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, FloatFormats,
                         testing::Values(CpuTarget::baseline, CpuTarget::avx2, CpuTarget::avx512),
                         [](const auto& info) { return std::string(to_string(info.param)); });

}  // namespace
}  // namespace ridgeline
