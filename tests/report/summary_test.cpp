#include "report/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>

namespace ridgeline::report {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

StepMetrics step(int64_t number, double seconds) {
  StepMetrics metrics;
  metrics.step = number;
  metrics.tokens = number * 100;
  metrics.loss = 10.0 / static_cast<double>(number);
  metrics.step_seconds = seconds;
  metrics.tokens_per_second = 100.0 / seconds;
  metrics.peak_memory = 1000 - number;
  return metrics;
}

TEST(Summary, SpeedIsTheMedianOfTheSecondHalf) {
  const std::vector<StepMetrics> metrics = {step(1, 100), step(2, 50), step(3, 1), step(4, 2), step(5, 9)};
  const RunSummary run = summarise(metrics);
  EXPECT_EQ(run.speed.first_step, 3);
  EXPECT_EQ(run.speed.last_step, 5);
  EXPECT_EQ(run.speed.step_seconds, 2.0);
  EXPECT_EQ(run.speed.tokens_per_second, 50.0);
  EXPECT_EQ(run.speed.mfu, std::nullopt);
  EXPECT_EQ(run.seconds, 162.0);
  EXPECT_EQ(run.steps, 5);
  EXPECT_EQ(run.tokens, 500);
  EXPECT_EQ(run.loss, 2.0);
  EXPECT_EQ(run.peak_memory, 999);
  EXPECT_EQ(summarise(std::span(metrics).first(4)).speed.step_seconds, 1.5);  // the mean of the middle two
}

TEST(Summary, LeavesOutWhatIsNotKnown) {
  std::vector<StepMetrics> metrics = {step(1, 1), step(2, kNan), step(3, 4)};
  metrics[2].mfu = 0.5;
  metrics[1].skipped = true;
  const RunSummary run = summarise(metrics);
  EXPECT_EQ(run.speed.step_seconds, 4.0);
  EXPECT_EQ(run.speed.mfu, 0.5);
  EXPECT_EQ(run.seconds, 5.0);
  EXPECT_EQ(run.skipped, 1);
  EXPECT_EQ(summarise(std::span(metrics).first(2)).speed.step_seconds, std::nullopt);
}

std::vector<HeldOut> held_out(size_t count) {
  std::vector<HeldOut> rows(count);
  for (size_t index = 0; index < count; ++index) {
    rows[index] = {static_cast<int64_t>(10 * (index + 1)), 0, 2.5, 4.0 - 2.0 * static_cast<double>(index) / 1000};
  }
  return rows;
}

std::vector<int64_t> steps_of(const std::string& table) {
  std::istringstream stream(table);
  std::string line;
  std::getline(stream, line);
  std::vector<int64_t> steps;
  while (std::getline(stream, line) && line.find("shown") == line.npos) steps.push_back(std::stoll(line));
  return steps;
}

TEST(Summary, TableShowsEveryHeldOutLossOfAShortRun) {
  std::vector<HeldOut> rows = held_out(2);
  rows[1].loss = 2.0;
  EXPECT_EQ(held_out_table(rows),
            "    step  training  held-out  perplexity\n"
            "      10    2.5000    4.0000      54.598  ####################################\n"
            "      20    2.5000    2.0000      7.3891  ##################\n");
  EXPECT_EQ(held_out_table({}), "");
}

TEST(Summary, TableOfALongRunIsSpreadAndHasTheLowest) {
  std::vector<HeldOut> rows = held_out(1000);
  rows[333].loss = 0.5;
  const std::string table = held_out_table(rows, 4);
  EXPECT_THAT(steps_of(table), ElementsAre(10, 3340, 6670, 10000));
  rows[333].loss = 3.0;
  rows[400].loss = 0.5;
  EXPECT_THAT(steps_of(held_out_table(rows, 4)), ElementsAre(10, 3340, 4010, 6670, 10000));
  EXPECT_THAT(held_out_table(rows, 4), HasSubstr("5 of 1000 shown; the lowest is of step 4010\n"));
}

TEST(Summary, TableStandsLossesThatAreNotFinite) {
  std::vector<HeldOut> rows = held_out(3);
  rows[0].loss = kNan;
  rows[2].loss = std::numeric_limits<double>::infinity();
  const std::string table = held_out_table(rows, 2);
  EXPECT_THAT(steps_of(table), ElementsAre(10, 20, 30));
  std::istringstream stream(table);
  for (std::string line; std::getline(stream, line);) EXPECT_LE(line.size(), 80) << line;
}

}  // namespace
}  // namespace ridgeline::report
