#include "search/tune/constraint.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace ridgeline::search {
namespace {

bool holds(const std::string& text) {
  return Constraint(text, {"tensor", "pipeline"}).holds({{"tensor", 8}, {"pipeline", 4}});
}

std::string fault(const std::string& text) {
  try {
    Constraint constraint(text, {"tensor", "pipeline"});
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Constraint, FollowsPrecedence) {
  EXPECT_TRUE(holds("tensor * pipeline <= 32 and tensor >= 8"));
  EXPECT_FALSE(holds("tensor * pipeline < 32"));
  EXPECT_TRUE(holds("tensor == 1 or pipeline == 4 and tensor == 8"));
  EXPECT_FALSE(holds("(tensor == 8 or pipeline == 4) and tensor == 1"));
  EXPECT_TRUE(holds("not tensor == 1"));
  EXPECT_TRUE(holds("tensor - pipeline - 3 == 1"));
  EXPECT_TRUE(holds("2 + tensor * pipeline == 34"));
  EXPECT_TRUE(holds("tensor / 3 == 2 and tensor % 3 == 2"));
  EXPECT_TRUE(holds(""));
}

TEST(Constraint, CannotTrap) {
  EXPECT_FALSE(holds("tensor / (pipeline - 4) >= 0"));
  EXPECT_FALSE(holds("tensor % (pipeline - 4) >= 0"));
  EXPECT_FALSE(holds("999999999999999 * 999999999999999 > 0"));
  // The least number of 64 bits over -1.
  EXPECT_FALSE(holds("(0 - 4294967296) * 2147483648 / (3 - pipeline) > 0"));
  EXPECT_TRUE(holds("(0 - 4294967296) * 2147483648 % (3 - pipeline) == 0"));
}

TEST(Constraint, NamesColumnAndNearestWord) {
  EXPECT_NE(fault("tensor > 1 and pipelin > 2").find("column 16"), std::string::npos);
  EXPECT_NE(fault("tensor > 1 and pipelin > 2").find("did you mean 'pipeline'"), std::string::npos);
  EXPECT_NE(fault("tensor >").find("the end"), std::string::npos);
  EXPECT_NE(fault("tensor = 8").find("'='"), std::string::npos);
  EXPECT_NE(fault("(tensor > 1").find("')'"), std::string::npos);
  EXPECT_NE(fault(std::string(500, '(')).find("deeper"), std::string::npos);
  EXPECT_NE(fault(std::string(5000, ' ') + "1").find("4096"), std::string::npos);
  EXPECT_NE(fault("tensor > 12ab").find("whole number"), std::string::npos);
}

}  // namespace
}  // namespace ridgeline::search
