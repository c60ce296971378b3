#include "report/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace ridgeline::report {
namespace {

using testing::HasSubstr;
using testing::Not;

ProgressState state(int64_t step, double loss = 3.25) {
  ProgressState state;
  state.metrics.step = step;
  state.metrics.loss = loss;
  state.metrics.tokens_per_second = 12300;
  state.metrics.tflops_per_device = 41.23;
  state.metrics.mfu = 0.381;
  state.metrics.peak_memory = int64_t{3} << 29;
  state.metrics.step_seconds = 2.0;
  state.total_steps = 100;
  state.seconds_left = 192;
  return state;
}

// What a terminal shows after these bytes: lines, where \r goes back and ESC [ K clears to the end.
std::string screen(const std::string& bytes) {
  std::string done, line;
  size_t column = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == '\r') {
      column = 0;
    } else if (bytes[i] == '\n') {
      done += line + "\n";
      line.clear();
      column = 0;
    } else if (bytes.compare(i, 3, "\x1b[K") == 0) {
      line.resize(std::min(line.size(), column));
      i += 2;
    } else {
      if (line.size() <= column) line.resize(column + 1);
      line[column++] = bytes[i];
    }
  }
  return done + line;
}

class ProgressTest : public testing::Test {
 protected:
  ProgressTest() : file_(std::tmpfile()) {}
  ~ProgressTest() override { std::fclose(file_); }
  Progress::Clock clock() {
    return [this] { return now_; };
  }
  std::string bytes() {
    std::fflush(file_);
    std::string all(static_cast<size_t>(std::ftell(file_)), '\0');
    std::rewind(file_);
    EXPECT_EQ(std::fread(all.data(), 1, all.size(), file_), all.size());
    return all;
  }
  std::FILE* file_;
  std::chrono::steady_clock::time_point now_{};
};

TEST(ProgressText, SaysWhatIsKnown) {
  EXPECT_EQ(progress_text(state(4), 3.5, 120),
            "step 4/100  loss 3.2500  val 3.5000  12.3 k tok/s  41.2 TFLOP/s  MFU 38.1%  1.50 GiB  ETA 3 min 12 s");
  auto little = state(100);
  little.metrics.mfu = {};
  little.metrics.peak_memory = 0;
  little.seconds_left = {};
  EXPECT_EQ(progress_text(little, {}, 120), "step 100/100  loss 3.2500  12.3 k tok/s  41.2 TFLOP/s");
}

TEST(ProgressText, LeavesTheLeastOutFirst) {
  EXPECT_EQ(progress_text(state(4), 3.5, 80),
            "step 4/100  loss 3.2500  val 3.5000  12.3 k tok/s  MFU 38.1%  ETA 3 min 12 s");
  for (int width = 0; width < 120; ++width) {
    EXPECT_LE(progress_text(state(4), 3.5, width).size(), static_cast<size_t>(width));
  }
  EXPECT_THAT(progress_text(state(4), 3.5, 30), HasSubstr("loss 3.2500"));
}

TEST_F(ProgressTest, ALiveLineIsRedrawnInPlace) {
  Progress progress(file_, Progress::Style::live, 79, clock());
  progress.update(state(1, 5.0));
  EXPECT_EQ(screen(bytes()).find('\n'), std::string::npos);
  now_ += std::chrono::seconds(1);
  progress.update(state(2, 4.0));
  const auto shown = screen(bytes());
  EXPECT_THAT(shown, HasSubstr("step 2/100  loss 4.0000"));
  EXPECT_THAT(shown, Not(HasSubstr("5.0000")));
  progress.finish();
  progress.finish();
  EXPECT_EQ(screen(bytes()), shown + "\n");
}

TEST_F(ProgressTest, RedrawsAtMostTenTimesASecondAndEndsWithTheNewest) {
  Progress progress(file_, Progress::Style::live, 79, clock());
  for (int i = 1; i <= 100; ++i) {
    progress.update(state(i));
    now_ += std::chrono::milliseconds(10);
  }
  const auto drawn = bytes();
  EXPECT_EQ(std::count(drawn.begin(), drawn.end(), '\r'), 10);
  progress.finish();
  EXPECT_THAT(screen(bytes()), HasSubstr("step 100/100"));
}

TEST_F(ProgressTest, LinesOfOthersStandAboveTheLiveLine) {
  Progress progress(file_, Progress::Style::live, 79, clock());
  progress.print_above([&] { std::fputs("before\n", file_); });
  progress.update(state(1));
  progress.print_above([&] { std::fputs("note\n", file_); });
  const auto shown = screen(bytes());
  EXPECT_EQ(shown.substr(0, 12), "before\nnote\n");
  EXPECT_THAT(shown.substr(12), testing::StartsWith("step 1/100"));
}

TEST_F(ProgressTest, APipeGetsPlainLines) {
  {
    Progress progress(file_, Progress::Style::plain, 79, clock());
    auto evaluated = state(1);
    evaluated.metrics.validation_loss = 3.5;
    progress.update(evaluated);
    progress.update(state(2));
  }
  const auto text = bytes();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_EQ(text.find_first_of("\r\x1b"), std::string::npos);
  EXPECT_THAT(text.substr(0, text.find('\n')), HasSubstr("val 3.5000"));
  EXPECT_THAT(text.substr(text.find('\n')), Not(HasSubstr("val")));  // it is of the step that measured it
}

TEST_F(ProgressTest, TheLiveLineKeepsTheNewestValidationLoss) {
  Progress progress(file_, Progress::Style::live, 79, clock());
  auto evaluated = state(1);
  evaluated.metrics.validation_loss = 3.5;
  progress.update(evaluated);
  now_ += std::chrono::seconds(1);
  progress.update(state(2));
  EXPECT_THAT(screen(bytes()), HasSubstr("val 3.5000"));
}

TEST_F(ProgressTest, EstimatesTheTimeLeft) {
  Progress progress(file_, Progress::Style::plain, 79, clock());
  auto unknown = state(70);
  unknown.seconds_left = {};
  progress.update(unknown);  // 30 steps of 2 s
  EXPECT_THAT(bytes(), HasSubstr("ETA 1 min 00 s"));
}

}  // namespace
}  // namespace ridgeline::report
