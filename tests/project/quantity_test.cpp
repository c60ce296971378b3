// Quantities on a command line.
#include "project/quantity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace ridgeline::project {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Quantity, CountsAndDurations) {
  EXPECT_EQ(parse_count("1T", "x"), 1e12);
  EXPECT_EQ(parse_count("1.5 B", "x"), 1.5e9);
  EXPECT_EQ(parse_count("2e6", "x"), 2e6);
  EXPECT_EQ(parse_seconds("60d", "x"), 60 * 86400.0);
  EXPECT_EQ(parse_seconds("1.5h", "x"), 5400);
  EXPECT_EQ(parse_seconds("5min", "x"), 300);
  for (const char* wrong : {"", "T", "-1T", "0", "1X", "nan", "inf", "1e400", "1TT"}) {
    EXPECT_THAT([&] { parse_count(wrong, "--tokens"); }, ThrowsMessage<InputError>(HasSubstr("--tokens"))) << wrong;
  }
  for (const char* wrong : {"", "60", "-1d", "1 fortnight"}) {
    EXPECT_THAT([&] { parse_seconds(wrong, "--deadline"); }, ThrowsMessage<InputError>(HasSubstr("60d"))) << wrong;
  }
}

}  // namespace
}  // namespace ridgeline::project
