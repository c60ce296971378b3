#include "report/loss_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

namespace ridgeline::report {
namespace {

using testing::HasSubstr;

std::vector<StepMetrics> curve(int64_t steps, double (*loss)(double)) {
  std::vector<StepMetrics> all(static_cast<size_t>(steps));
  for (int64_t i = 0; i < steps; ++i) {
    all[static_cast<size_t>(i)].step = i + 1;
    all[static_cast<size_t>(i)].loss = loss(static_cast<double>(i));
  }
  return all;
}

std::vector<std::string> lines(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> all;
  for (std::string line; std::getline(stream, line);) all.push_back(line);
  return all;
}

// Characters, not bytes: those that do not continue a UTF-8 sequence.
size_t width(const std::string& line) {
  return static_cast<size_t>(std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

TEST(LossChart, DrawsAFallingLineFromUpperLeftToLowerRight) {
  const auto text = loss_chart(curve(5, [](double i) { return 5.0 - i; }), {.width = 31, .height = 5, .ascii = true});
  EXPECT_EQ(text,
            "        5 |***\n"
            "          |   *****\n"
            "        3 |        ****\n"
            "          |            *****\n"
            "        1 |                 ***\n"
            "           step 1             5\n");
}

TEST(LossChart, FitsItsSizeForAnyCurve) {
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<std::vector<StepMetrics>> curves = {
      curve(1, [](double) { return 2.0; }),
      curve(2, [](double i) { return i; }),
      curve(10, [](double) { return 2.0; }),
      curve(10'000, [](double i) { return 4 + std::sin(i) + 7 * std::exp(-i / 100); }),
      curve(100, [](double i) { return i * 1e30; }),
      curve(100, [](double i) { return 1e-12 * i; })};
  curves.push_back(curve(100, [](double i) { return 3 - i / 100; }));
  curves.back()[50].loss = infinity;
  curves.back()[70].validation_loss = 2.9;
  for (const auto& metrics : curves) {
    for (const int columns : {30, 80, 120}) {
      for (const bool ascii : {false, true}) {
        const auto all = lines(loss_chart(metrics, {.width = columns, .height = 12, .ascii = ascii}));
        ASSERT_GE(all.size(), 13u);
        for (const auto& line : all) EXPECT_LE(width(line), static_cast<size_t>(columns)) << line;
      }
    }
  }
}

TEST(LossChart, BrailleIsUtf8) {
  const auto text = loss_chart(curve(1000, [](double i) { return 10 / (1 + i); }), {.width = 40, .height = 4});
  EXPECT_THAT(text, HasSubstr("\u2502"));
  size_t braille = 0;
  for (size_t at = text.find('\xe2'); at != text.npos; at = text.find('\xe2', at + 3)) {
    const auto second = static_cast<unsigned char>(text[at + 1]);
    const auto third = static_cast<unsigned char>(text[at + 2]);
    if (second == 0x94 && third == 0x82) continue;  // the axis
    EXPECT_TRUE(second >= 0xa0 && second <= 0xa3 && third >= 0x80 && third <= 0xbf);
    ++braille;
  }
  EXPECT_GT(braille, 25u);
}

TEST(LossChart, MarksHeldOutLossesAndCountsWhatIsNotFinite) {
  auto metrics = curve(20, [](double i) { return 5 - i / 10; });
  metrics[10].validation_loss = 4.9;
  metrics[3].loss = std::numeric_limits<double>::quiet_NaN();
  const auto text = loss_chart(metrics);
  EXPECT_THAT(text, HasSubstr("o held-out loss"));
  EXPECT_THAT(text, HasSubstr("not finite: 1"));
}

TEST(LossChart, SaysWhenThereIsNothing) {
  EXPECT_EQ(loss_chart({}), "no finite loss to draw\n");
  EXPECT_EQ(loss_chart(curve(3, [](double) { return std::nan(""); })), "no finite loss to draw\n");
}

}  // namespace
}  // namespace ridgeline::report
