#include "core/text.h"

#include <gtest/gtest.h>

#include <limits>

namespace ridgeline {
namespace {

TEST(EditDistance, CountsInsertionsDeletionsReplacementsAndSwaps) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("warmup", "wramup"), 1u);
  EXPECT_EQ(edit_distance("lr", "lr"), 0u);
}

TEST(Nearest, FindsTheClosestWithinReason) {
  const std::vector<std::string> names = {"tensor", "pipeline", "data"};
  EXPECT_EQ(nearest("tensro", names), "tensor");
  EXPECT_EQ(nearest("pipelines", names), "pipeline");
  EXPECT_EQ(nearest("checkpoint", names), std::nullopt);
  EXPECT_EQ(did_you_mean("dat", names), "; did you mean 'data'?");
  EXPECT_EQ(did_you_mean("zzzz", names), "");
}

TEST(Format, Bytes) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.00 KiB");
  EXPECT_EQ(format_bytes(1536.0 * 1024), "1.50 MiB");
  EXPECT_EQ(format_bytes(-23.4 * 1024 * 1024 * 1024), "-23.4 GiB");
  EXPECT_EQ(format_bytes(1024.0 * 1024 - 1), "1.00 MiB");
}

TEST(Format, Count) {
  EXPECT_EQ(format_count(950), "950");
  EXPECT_EQ(format_count(1300), "1.30 k");
  EXPECT_EQ(format_count(124e6), "124 M");
  EXPECT_EQ(format_count(174.6e9), "175 B");
  EXPECT_EQ(format_count(999.9e9), "1.00 T");
  EXPECT_EQ(format_count(std::numeric_limits<double>::infinity()), "-");
}

TEST(Format, Duration) {
  EXPECT_EQ(format_duration(0), "0 s");
  EXPECT_EQ(format_duration(12.3e-6), "12.3 us");
  EXPECT_EQ(format_duration(4.56e-3), "4.56 ms");
  EXPECT_EQ(format_duration(7.89), "7.89 s");
  EXPECT_EQ(format_duration(59.99), "1 min 00 s");
  EXPECT_EQ(format_duration(125), "2 min 05 s");
  EXPECT_EQ(format_duration(3 * 3600 + 7 * 60), "3 h 07 min");
  EXPECT_EQ(format_duration(12 * 86400 + 4 * 3600), "12 d 04 h");
  EXPECT_EQ(format_duration(-2), "-2.00 s");
  EXPECT_EQ(format_duration(std::numeric_limits<double>::quiet_NaN()), "-");
  EXPECT_EQ(format_duration(1e300), "1.16e+295 d");
}

}  // namespace
}  // namespace ridgeline
