#include "study/run_watch.h"

#include <gtest/gtest.h>

#include <fstream>

#include "study/scratch.h"

namespace ridgeline::study {
namespace {

using Advice = RunWatch::Advice;

struct Watched {
  Scratch scratch;
  std::string path = scratch.path("metrics.jsonl");
  int64_t step = 0;
  WatchLimits limits{.least_steps = 6, .tolerance = 0.05, .heartbeat_seconds = 10, .deadline_seconds = 100};

  void write(double seconds, const std::string& loss = "2.5", bool whole = true) {
    std::ofstream stream(path, std::ios::app);
    stream << R"({"step":)" << ++step << R"(,"loss":)" << loss << R"(,"step_seconds":)" << seconds
           << R"(,"peak_memory":)" << 1000 * step << "}" << (whole ? "\n" : "");
  }
  RunWatch watch() const { return {path, limits, 0}; }
};

TEST(RunWatch, EndsWhenTheMedianIsKnown) {
  Watched run;
  RunWatch watch = run.watch();
  EXPECT_EQ(watch.look(1, std::nullopt), Advice::go_on);  // no file yet
  run.write(5.0);
  for (int i = 0; i < 5; ++i) {
    run.write(1.0);
    EXPECT_EQ(watch.look(2 + i, std::nullopt), Advice::go_on) << i;
  }
  run.write(1.01);
  EXPECT_EQ(watch.look(8, std::nullopt), Advice::enough);
  EXPECT_EQ(watch.state().dropped, 1u);
  EXPECT_EQ(watch.state().seconds.median, 1.0);
  EXPECT_EQ(watch.peak_bytes(), 7000);
}

TEST(RunWatch, HopelessRunsStop) {
  Watched run;
  run.limits.tolerance = 0;
  RunWatch watch = run.watch();
  for (int i = 0; i < 5; ++i) run.write(2.0 + 0.1 * i);
  EXPECT_EQ(watch.look(1, 2.05), Advice::go_on);
  EXPECT_EQ(watch.look(1, 1.9), Advice::hopeless);
}

TEST(RunWatch, ALossThatIsNoNumberEndsTheRun) {
  Watched run;
  RunWatch watch = run.watch();
  run.write(1.0);
  EXPECT_EQ(watch.look(1, std::nullopt), Advice::go_on);
  run.write(1.0, "null");
  EXPECT_EQ(watch.look(2, std::nullopt), Advice::diverged);
}

TEST(RunWatch, SilenceAndDeadline) {
  Watched run;
  RunWatch watch = run.watch();
  EXPECT_EQ(watch.look(9, std::nullopt), Advice::go_on);
  run.write(1.0);
  EXPECT_EQ(watch.look(9.5, std::nullopt), Advice::go_on);
  EXPECT_EQ(watch.look(19, std::nullopt), Advice::go_on);
  EXPECT_EQ(watch.look(20, std::nullopt), Advice::silent);
  for (int second = 20; second < 100; second += 5) {
    run.write(second);  // never steady
    watch.look(second, std::nullopt);
  }
  EXPECT_EQ(watch.look(101, std::nullopt), Advice::late);
}

TEST(RunWatch, HalfALineWaitsForItsEnd) {
  Watched run;
  RunWatch watch = run.watch();
  run.write(1.0, "2.5", false);
  watch.look(1, std::nullopt);
  EXPECT_TRUE(watch.step_seconds().empty());
  std::ofstream(run.path, std::ios::app) << "\n";
  watch.look(2, std::nullopt);
  EXPECT_EQ(watch.step_seconds().size(), 1u);
}

TEST(RunWatch, WhatIsNoMetricsFileIsAFault) {
  Watched run;
  std::ofstream(run.path) << "surely no JSON\n";
  RunWatch watch = run.watch();
  EXPECT_EQ(watch.look(1, std::nullopt), Advice::go_on);
  EXPECT_FALSE(watch.fault().empty());
}

}  // namespace
}  // namespace ridgeline::study
