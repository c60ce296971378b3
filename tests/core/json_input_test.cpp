#include "core/json_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/message_of.h"

namespace ridgeline {
namespace {

using testing::HasSubstr;

TEST(JsonInput, TellsDuplicatesFromEqualNamesElsewhere) {
  const auto value = parse_json(R"({"a":{"a":1,"b":{"a":2}},"b":[{"a":3},{"a":4}]})", "x");
  EXPECT_EQ(value["b"][1]["a"], 4);
  EXPECT_THAT(message_of<InputError>([] { parse_json(R"({"a":{"c":1,"b":{},"c":2}})", "x"); }),
              HasSubstr("x: the key \"c\" stands there twice"));
}

TEST(JsonInput, BoundsDepthWithoutRecursion) {
  const int deep = 2'000'000;
  EXPECT_THAT(message_of<InputError>([&] { parse_json(std::string(deep, '['), "x"); }), HasSubstr("deeper than 64"));
  EXPECT_NO_THROW(parse_json("[[[1]]]", "x", 3));
  EXPECT_THROW(parse_json("[[[[1]]]]", "x", 2), InputError);
}

TEST(JsonInput, AccessSaysWhatWasFound) {
  const auto value =
      parse_json(R"({"n":-1,"f":1.5,"s":"text","big":18446744073709551615,"list":[1,"2"]})", "file.json");
  EXPECT_THAT(message_of<InputError>([&] { json_count(value, "n", "file.json"); }), HasSubstr("\"n\" is -1"));
  EXPECT_THAT(message_of<InputError>([&] { json_count(value, "f", "file.json"); }), HasSubstr("whole number"));
  EXPECT_THAT(message_of<InputError>([&] { json_count(value, "big", "file.json"); }), HasSubstr("whole number"));
  EXPECT_THAT(message_of<InputError>([&] { json_count(value, "s", "file.json"); }), HasSubstr("\"text\""));
  EXPECT_THAT(message_of<InputError>([&] { json_string(value, "n", "file.json"); }), HasSubstr("a string"));
  EXPECT_THAT(message_of<InputError>([&] { json_counts(value, "list", "file.json"); }),
              HasSubstr("\"list\" is [1,\"2\"]"));
  EXPECT_THAT(message_of<InputError>([&] { json_field(value, "none", "file.json"); }), HasSubstr("missing"));
}

}  // namespace
}  // namespace ridgeline
