#include "study/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

#include "study/scratch.h"

namespace ridgeline::study {
namespace {

using search::Outcome;
using testing::HasSubstr;

TEST(Verdict, OutOfMemoryWithWhatWasMissing) {
  const Verdict ours = verdict_of({.exit_code = 1},
                                  "ridgeline: rank 1 failed: out of memory: 1.50 GiB more were wanted. Use a smaller\n");
  EXPECT_EQ(ours.outcome, Outcome::out_of_memory);
  EXPECT_EQ(ours.missing_bytes, 1.5 * 1073741824);
  EXPECT_THAT(ours.message, HasSubstr("1.50 GiB more were wanted"));
  const Verdict device = verdict_of({.exit_code = 1},
                                    "ridgeline: out of memory on a device: CUDA out of memory. Tried to allocate 2.00 GiB. "
                                    "GPU 0 has a total capacity of 63.98 GiB of which 1.25 GiB is free. Including\n");
  EXPECT_EQ(device.outcome, Outcome::out_of_memory);
  EXPECT_EQ(device.missing_bytes, 0.75 * 1073741824);
  EXPECT_EQ(verdict_of({.exit_code = 1}, "terminate: std::bad_alloc\n").outcome, Outcome::out_of_memory);
}

TEST(Verdict, KilledForMemoryOrFromOutside) {
  EXPECT_EQ(verdict_of({.signal = SIGKILL, .kernel_ran_out = true}, "").outcome, Outcome::out_of_memory);
  EXPECT_EQ(verdict_of({.signal = SIGKILL}, "").outcome, Outcome::infrastructure);
  EXPECT_EQ(verdict_of({.signal = SIGTERM}, "").outcome, Outcome::infrastructure);
  EXPECT_EQ(verdict_of({.signal = SIGSEGV}, "").outcome, Outcome::crashed);
  EXPECT_EQ(verdict_of({.exit_code = 1}, "rank 2 was killed by signal 9 (out of memory?)\n").outcome, Outcome::infrastructure);
  EXPECT_EQ(verdict_of({.exit_code = 1}, "rank 2 was killed by signal 11 (Segmentation fault)\n").outcome,
            Outcome::crashed);
}

TEST(Verdict, RefusedInputIsInvalid) {
  const Verdict verdict = verdict_of({.exit_code = 2}, "start\nridgeline: strategy.tensor = 3: 4 heads do not divide\n\n");
  EXPECT_EQ(verdict.outcome, Outcome::invalid);
  EXPECT_EQ(verdict.message, "ridgeline: strategy.tensor = 3: 4 heads do not divide");
}

TEST(Verdict, TheRest) {
  EXPECT_EQ(verdict_of({.fault = "job 7 ended without an exit code; Slurm says NODE_FAIL"}, "").outcome,
            Outcome::infrastructure);
  EXPECT_EQ(verdict_of({.is_late = true}, "").outcome, Outcome::timeout);
  EXPECT_EQ(verdict_of({.exit_code = 1}, "bind: Address already in use\n").outcome, Outcome::infrastructure);
  EXPECT_EQ(verdict_of({.exit_code = 1}, "ridgeline: rank 0 failed: step 2: the gradient norm is nan (loss nan).\n").outcome,
            Outcome::diverged);
  EXPECT_EQ(verdict_of({.exit_code = 1}, "ridgeline: no such layer\nrank 1 ended with exit code 1\n").message,
            "exit code 1: ridgeline: no such layer");
  const Verdict crash = verdict_of({.exit_code = 7}, "some\nlast words\n");
  EXPECT_EQ(crash.outcome, Outcome::crashed);
  EXPECT_EQ(crash.message, "exit code 7: last words");
}

TEST(Verdict, BytesOfTexts) {
  EXPECT_EQ(parse_bytes("512 B"), 512);
  EXPECT_EQ(parse_bytes("2.5 KiB more"), 2560);
  EXPECT_EQ(parse_bytes("3 GB"), 3e9);
  EXPECT_EQ(parse_bytes("some"), 0);
  EXPECT_EQ(parse_bytes("-3 GB"), 0);
  EXPECT_EQ(parse_bytes("3 parsecs"), 0);
}

TEST(Verdict, TailStartsWithALine) {
  const Scratch scratch;
  const std::string path = scratch.path("log.txt");
  std::ofstream(path) << "first line\nsecond\x1b[31m line\nthird line\n";
  EXPECT_EQ(tail_of(path, 1000), "first line\nsecond [31m line\nthird line\n");
  EXPECT_EQ(tail_of(path, 15), "third line\n");
  EXPECT_EQ(tail_of(scratch.path("none"), 10), "");
}

}  // namespace
}  // namespace ridgeline::study
