#include "report/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/file_size_limit.h"
#include "core/temporary_folder.h"

namespace ridgeline::report {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

StepMetrics step(int64_t number, double loss = 1.0) {
  StepMetrics metrics;
  metrics.step = number;
  metrics.loss = loss;
  return metrics;
}

std::vector<int64_t> steps(const std::string& path) {
  std::vector<int64_t> numbers;
  for (const auto& metrics : read_metrics(path)) numbers.push_back(metrics.step);
  return numbers;
}

TEST(StepMetrics, KeysOfALineAreThePublishedNames) {
  StepMetrics metrics{.step = 3,
                      .tokens = 1536,
                      .loss = 5.25,
                      .grad_norm = 0.5,
                      .lr = 0.001,
                      .step_seconds = 0.25,
                      .tokens_per_second = 2048,
                      .tflops_per_device = 1.5,
                      .mfu = 0.375,
                      .hfu = {},
                      .peak_memory = 1024,
                      .validation_loss = {},
                      .loss_scale = {},
                      .skipped = false};
  EXPECT_EQ(to_json_line(metrics),
            R"({"step":3,"tokens":1536,"loss":5.25,"grad_norm":0.5,"lr":0.001,"step_seconds":0.25,)"
            R"("tokens_per_second":2048.0,"tflops_per_device":1.5,"mfu":0.375,"peak_memory":1024})");
}

TEST(StepMetrics, EveryFieldSurvives) {
  const StepMetrics metrics{.step = 7,
                            .tokens = int64_t{1} << 50,
                            .loss = 1.0 / 3,
                            .grad_norm = 1e-30,
                            .lr = 6e-5,
                            .step_seconds = 12.5,
                            .tokens_per_second = 1e7,
                            .tflops_per_device = 123.4,
                            .mfu = 0.31,
                            .hfu = 0.41,
                            .peak_memory = int64_t{1} << 40,
                            .validation_loss = 2.5,
                            .loss_scale = 65536,
                            .skipped = true};
  const auto line = to_json_line(metrics);
  const auto read = parse_metrics(line, "here");
  EXPECT_EQ(to_json_line(read), line);
  EXPECT_EQ(read.loss, 1.0 / 3);
  EXPECT_EQ(read.tokens, int64_t{1} << 50);
  EXPECT_EQ(read.hfu, 0.41);
  EXPECT_TRUE(read.skipped);
}

TEST(StepMetrics, ADivergedLossIsNull) {
  const auto line = to_json_line(step(1, std::numeric_limits<double>::infinity()));
  EXPECT_THAT(line, HasSubstr(R"("loss":null)"));
  EXPECT_TRUE(std::isnan(parse_metrics(line, "here").loss));
}

TEST(StepMetrics, WrongLinesAreNamed) {
  for (const auto* line : {"", "{", "[1]", "7", "{\"loss\": 1}", "{\"step\": 1} x", "\xff\xfe"}) {
    EXPECT_THAT([&] { parse_metrics(line, "m:3"); }, testing::ThrowsMessage<InputError>(HasSubstr("m:3: expected")))
        << line;
  }
  EXPECT_THAT([] { parse_metrics(R"({"step": 1.5})", "m:3"); },
              testing::ThrowsMessage<InputError>(HasSubstr("m:3: step = 1.5: expected a whole number")));
  EXPECT_THAT([] { parse_metrics(R"({"step": 1, "loss": "low"})", "m:3"); },
              testing::ThrowsMessage<InputError>(HasSubstr("loss = \"low\": expected a number or null")));
  EXPECT_THROW(parse_metrics(R"({"step": 18446744073709551615})", "m:3"), InputError);
  EXPECT_THROW(parse_metrics(R"({"step": 1, "skipped": 1})", "m:3"), InputError);
}

class MetricsFileTest : public testing::Test {
 protected:
  void write_steps(int64_t last) {
    MetricsFile file(path_, 0);
    for (int64_t number = 1; number <= last; ++number) file.append(step(number));
  }
  TemporaryFolder folder_;
  std::string path_ = folder_.path("run/metrics.jsonl");
};

TEST_F(MetricsFileTest, ALineIsThereWhenAppendReturns) {
  MetricsFile file(path_, 0);
  for (int64_t number = 1; number <= 3; ++number) {
    file.append(step(number));
    EXPECT_EQ(steps(path_).size(), static_cast<size_t>(number));
  }
}

TEST_F(MetricsFileTest, ResumingCutsLaterStepsOff) {
  write_steps(5);
  const auto kept = read_file(path_);
  {
    MetricsFile file(path_, 3);
    file.append(step(4, 9.0));
  }
  EXPECT_THAT(steps(path_), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(read_metrics(path_).back().loss, 9.0);
  EXPECT_EQ(read_file(path_).substr(0, kept.size() * 3 / 5), kept.substr(0, kept.size() * 3 / 5));
  MetricsFile(path_, 100);
  EXPECT_THAT(steps(path_), ElementsAre(1, 2, 3, 4));
  MetricsFile(path_, 0);
  EXPECT_THAT(steps(path_), ElementsAre());
  EXPECT_FALSE(std::filesystem::exists(path_ + ".tmp"));
}

// Wherever a writer was killed, reading and resuming go on with the whole lines.
TEST_F(MetricsFileTest, AHalfWrittenLastLineIsLeftOut) {
  write_steps(3);
  const auto whole = read_file(path_);
  const auto third = whole.size() / 3 * 2;
  for (size_t size = third; size < whole.size(); ++size) {
    write_file(path_, whole.substr(0, size));
    EXPECT_THAT(steps(path_), ElementsAre(1, 2)) << size;
    MetricsFile(path_, 3).append(step(3));
    EXPECT_EQ(read_file(path_), whole) << size;
  }
}

TEST_F(MetricsFileTest, KeepsKeysThatItDoesNotKnow) {
  write_steps(1);
  write_file(path_, "{\"step\":1,\"mine\":[1,2]}\n{\"step\":2}\n");
  MetricsFile(path_, 1);
  EXPECT_EQ(read_file(path_), "{\"step\":1,\"mine\":[1,2]}\n");
}

TEST_F(MetricsFileTest, ADamagedLineInTheMiddleIsNamedAndNothingIsLost) {
  write_steps(1);
  const auto text = read_file(path_) + "garbage\n" + read_file(path_);
  write_file(path_, text);
  EXPECT_THAT([&] { MetricsFile(path_, 1); },
              testing::ThrowsMessage<InputError>(HasSubstr("metrics.jsonl:2: expected a JSON object")));
  EXPECT_EQ(read_file(path_), text);
}

TEST_F(MetricsFileTest, AFullDiskIsAFailure) {
  write_steps(2);
  const auto before = read_file(path_);
  MetricsFile file(path_, 2);
  {
    const FileSizeLimit limit(before.size() + 10);
    EXPECT_THAT([&] { file.append(step(12)); }, testing::ThrowsMessage<Failure>(HasSubstr("the line of step 12")));
  }
  EXPECT_EQ(read_file(path_), before);
  file.append(step(3));
  EXPECT_THAT(steps(path_), ElementsAre(1, 2, 3));
}

TEST_F(MetricsFileTest, AMissingFileIsNamed) {
  EXPECT_THAT([&] { read_metrics(folder_.path("none.jsonl")); },
              testing::ThrowsMessage<InputError>(HasSubstr("none.jsonl: cannot read")));
  EXPECT_THAT([&] { read_metrics("/dev/zero"); }, testing::ThrowsMessage<InputError>(HasSubstr("not a regular file")));
}

}  // namespace
}  // namespace ridgeline::report
