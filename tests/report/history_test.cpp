#include "report/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "core/error.h"
#include "core/temporary_folder.h"

namespace ridgeline::report {
namespace {

using testing::HasSubstr;

StepMetrics step(int64_t number, double loss) {
  StepMetrics metrics;
  metrics.step = number;
  metrics.tokens = number * 10;
  metrics.loss = loss;
  metrics.step_seconds = 0.5;
  return metrics;
}

TEST(RunHistory, KeepsEveryStepOfAShortRun) {
  RunHistory history(8);
  for (int64_t number = 1; number <= 8; ++number) history.add(step(number, 1.0 / static_cast<double>(number)));
  const auto document = history.to_json();
  EXPECT_EQ(document["step"].size(), 8);
  EXPECT_EQ(document["steps_per_row"], 1);
  EXPECT_EQ(document["loss"]["mean"][3], 0.25);
  EXPECT_FALSE(document["loss"].contains("low"));
  EXPECT_FALSE(document.contains("mfu")) << "no step has one";
}

TEST(RunHistory, ALongRunIsFewRowsThatLoseNoSpike) {
  for (const size_t most : {7, 8}) {
    RunHistory history(most);
    const int64_t steps = 1000;
    for (int64_t number = 1; number <= steps; ++number) history.add(step(number, number == 617 ? 99.0 : 2.0));
    const auto document = history.to_json();
    const size_t rows = document["step"].size();
    EXPECT_LE(rows, most);
    EXPECT_GE(rows, most / 2);
    EXPECT_EQ(document["step"].back(), steps);
    EXPECT_EQ(document["tokens"].back(), steps * 10);
    EXPECT_EQ(document["seconds"].back(), 0.5 * steps);
    int64_t counted = 0;
    double highest = 0, sum = 0;
    for (size_t row = 0; row < rows; ++row) {
      counted += document["steps"][row].get<int64_t>();
      highest = std::max(highest, document["loss"]["high"][row].get<double>());
      EXPECT_EQ(document["loss"]["low"][row], 2.0);
      sum += document["loss"]["mean"][row].get<double>() * document["steps"][row].get<double>();
    }
    EXPECT_EQ(counted, steps);
    EXPECT_EQ(highest, 99.0);
    EXPECT_NEAR(sum, 2.0 * (steps - 1) + 99.0, 1e-2);
  }
}

TEST(RunHistory, WhatIsNotFiniteIsCountedAndNotDrawn) {
  RunHistory history(4);
  history.add(step(1, 1.0));
  history.add(step(2, NAN));
  const auto document = history.to_json();
  EXPECT_EQ(document["not_finite"], 1);
  EXPECT_TRUE(document["loss"]["mean"][1].is_null());
}

TEST(RunHistory, StepsMustRise) {
  RunHistory history(4);
  history.add(step(9, 1.0));
  try {
    history.add(step(5, 1.0));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("step 5 stands after step 9"));
  }
}

TEST(MetricsReader, ReadsLinesThatLieAcrossItsBlocksAndLeavesOutAHalfOne) {
  const TemporaryFolder folder;
  const std::string path = folder.path("metrics.jsonl");
  {
    std::ofstream file(path);
    for (int64_t number = 1; number <= 5000; ++number) file << to_json_line(step(number, 1.5)) << "\n";
    file << "{\"step\": 5001";
  }
  MetricsReader reader(path);
  int64_t seen = 0;
  while (const auto metrics = reader.next()) {
    ++seen;
    ASSERT_EQ(metrics->step, seen);
    ASSERT_EQ(metrics->tokens, seen * 10);
  }
  EXPECT_EQ(seen, 5000);
  EXPECT_EQ(reader.line(), 5000);
  EXPECT_EQ(reader.share(), 1.0);
}

}  // namespace
}  // namespace ridgeline::report
