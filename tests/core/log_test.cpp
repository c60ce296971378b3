#include "core/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/error.h"

namespace ridgeline {
namespace {

class Log : public testing::Test {
 protected:
  void SetUp() override { unsetenv("RIDGELINE_LOG"); }
  void TearDown() override {
    unsetenv("RIDGELINE_LOG");
    set_up_log();
  }
  std::string lines(int rank, int world) {
    testing::internal::CaptureStderr();
    set_up_log(rank, world);
    spdlog::debug("a detail");
    spdlog::info("a fact");
    spdlog::warn("a warning");
    return testing::internal::GetCapturedStderr();
  }
};

TEST_F(Log, RankZeroTellsFactsOthersWarnings) {
  EXPECT_THAT(lines(0, 1), testing::ContainsRegex("^[0-9:]+ info a fact\n[0-9:]+ warning a warning\n$"));
  EXPECT_THAT(lines(3, 8), testing::ContainsRegex("^[0-9:]+ warning \\[rank 3\\] a warning\n$"));
}

TEST_F(Log, LevelComesFromTheEnvironment) {
  setenv("RIDGELINE_LOG", "debug", 1);
  EXPECT_THAT(lines(3, 8), testing::HasSubstr("[rank 3] a detail"));
  setenv("RIDGELINE_LOG", "off", 1);
  EXPECT_EQ(lines(0, 1), "");
}

TEST_F(Log, UnknownLevelIsRefused) {
  setenv("RIDGELINE_LOG", "debgu", 1);
  try {
    set_up_log();
    ADD_FAILURE() << "accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("RIDGELINE_LOG = 'debgu'"));
    EXPECT_THAT(error.what(), testing::HasSubstr("did you mean 'debug'?"));
  }
}

}  // namespace
}  // namespace ridgeline
