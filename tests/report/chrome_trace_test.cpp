#include "report/chrome_trace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace ridgeline::report {
namespace {

nlohmann::json read(const std::string& events) { return nlohmann::json::parse(trace_document(events))["traceEvents"]; }

TEST(ChromeTrace, IsJsonWhateverNamesHold) {
  ChromeTrace trace;
  trace.name_process(1, "a \"quoted\" \\ name\n");
  trace.slice(1, 2, {.name = "not UTF-8: \xff", .category = "c", .begin = 1, .end = 2});
  const auto events = read(trace.events());
  EXPECT_EQ(events[0]["args"]["name"], "a \"quoted\" \\ name\n");
  EXPECT_EQ(events[2]["ts"], 1e6);
  EXPECT_EQ(events[2]["dur"], 1e6);
}

TEST(ChromeTrace, NeighboursTouchHoweverLateTheyAre) {
  ChromeTrace trace;
  const double start = 1e6 + 1.0 / 3;  // seconds since some boot
  for (int i = 0; i < 100; ++i)
    trace.slice(0, 0, {.name = "x", .category = "c", .begin = start + i / 7e5, .end = start + (i + 1) / 7e5});
  const auto events = read(trace.events());
  for (size_t i = 1; i < events.size(); ++i) {
    EXPECT_NEAR(events[i - 1]["ts"].get<double>() + events[i - 1]["dur"].get<double>(), events[i]["ts"].get<double>(),
                1e-3);
  }
}

TEST(ChromeTrace, PartsOfManyRanksMakeOneDocument) {
  ChromeTrace first, second;
  first.counter(0, "bytes", 0.5, 7);
  second.counter(1, "bytes", 0.5, 8);
  EXPECT_EQ(read(first.events() + std::string(kTraceSeparator) + second.events()).size(), 2u);
  EXPECT_EQ(read("").size(), 0u);
}

}  // namespace
}  // namespace ridgeline::report
