#include "train/preflight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "cost/memory.h"
#include "train/small_run.h"

namespace ridgeline::train {
namespace {

TEST(Preflight, WhatTheFullestRankKeepsMustFit) {
  spec::TrainSpec spec = small_spec("unused");
  spec.strategy.pipeline = 2;
  spec::derive_data(spec.strategy, spec.model, 4);
  const auto [stage, memory] = cost::fullest_device(spec.model, spec.strategy, spec.precision.compute);
  EXPECT_NO_THROW(check_memory(spec, memory.total(), false));
  try {
    check_memory(spec, memory.total() - 1, false);
    FAIL() << "expected a Failure";
  } catch (const Failure& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("a rank of stage " + std::to_string(stage) + " keeps"));
    EXPECT_THAT(error.what(), testing::HasSubstr("optimizer"));
  }
}

}  // namespace
}  // namespace ridgeline::train
