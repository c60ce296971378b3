// ridgeline report on runs of every kind.
#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/in_folder.h"

namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class Report : public InFolder {
 protected:
  // Steps of 2 ms with falling losses, held-out ones every tenth.
  void write_run(int steps) {
    std::filesystem::create_directory(folder_ + "/run");
    std::string lines;
    for (int step = 1; step <= steps; ++step) {
      nlohmann::json line = {{"step", step},
                             {"tokens", step * 1000},
                             {"loss", 5.0 / step},
                             {"step_seconds", 0.002},
                             {"tokens_per_second", 500'000.0},
                             {"tflops_per_device", 1.25},
                             {"peak_memory", 3 << 20}};
      if (step % 10 == 0) line["validation_loss"] = 6.0 / step;
      lines += line.dump() + "\n";
    }
    write("run/metrics.jsonl", lines);
  }
};

TEST_F(Report, IsLossesSpeedAndMemoryIn80Columns) {
  write_run(1000);
  for (const std::string options : {"", "--ascii "}) {
    const Result result = run("report " + options + "run");
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_THAT(result.output, StartsWith("run: 1000 steps, 1.00 M tokens, 2.00 s of steps\n"));
    EXPECT_THAT(result.output, HasSubstr("o held-out loss\n"));
    EXPECT_THAT(result.output, HasSubstr("    1000    0.0050    0.0060"));
    EXPECT_THAT(result.output, HasSubstr("medians of steps 501 to 1000:\n  500 k tokens/s, 2.00 ms a step\n"));
    EXPECT_THAT(result.output, HasSubstr("1.25 TFLOP/s a device, MFU unknown"));
    EXPECT_THAT(result.output, HasSubstr("3.00 MiB"));
    EXPECT_THAT(result.output, HasSubstr("Loss of the last step: 0.0050\n"));
    std::istringstream stream(result.output);
    for (std::string line; std::getline(stream, line);) {
      const auto width = std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; });
      EXPECT_LE(width, 80) << line;
    }
    const bool is_ascii = std::all_of(result.output.begin(), result.output.end(), [](char c) { return c > 0; });
    EXPECT_EQ(is_ascii, !options.empty());
  }
}

TEST_F(Report, IsADocument) {
  write_run(20);
  const Result result = run("report run/metrics.jsonl --json");
  const auto document = nlohmann::json::parse(result.output);
  EXPECT_EQ(document["steps"], 20);
  EXPECT_EQ(document["median"]["tokens_per_second"], 500'000.0);
  EXPECT_EQ(document["median"]["first_step"], 11);
  EXPECT_TRUE(document["median"]["mfu"].is_null());
  EXPECT_EQ(document["peak_memory"], 3 << 20);
  ASSERT_EQ(document["held_out"].size(), 2);
  EXPECT_EQ(document["held_out"][1]["validation_loss"], 0.3);
}

TEST_F(Report, OfARunWithoutHeldOutLossesHasNoTable) {
  write_run(9);
  const Result result = run("report run");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.output, Not(HasSubstr("held-out")));
}

TEST_F(Report, OfNoRunIsRefused) {
  const auto refused = [&](const std::string& path) {
    const Result result = run("report " + path);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.output, "");
    return result.errors;
  };
  EXPECT_THAT(refused("none"), StartsWith("ridgeline: none: cannot read: No such file"));
  EXPECT_THAT(refused("."), HasSubstr("metrics.jsonl: cannot read"));
  EXPECT_THAT(refused("/dev/zero"), HasSubstr("/dev/zero: is not a regular file; expected a metrics.jsonl"));
  write_run(0);
  EXPECT_THAT(refused("run"), HasSubstr("no step is finished yet"));
  write("run/metrics.jsonl", "{\"step\": 1}\nnonsense\n");
  EXPECT_THAT(refused("run"), HasSubstr("metrics.jsonl:2: expected a JSON object"));
}

TEST_F(Report, OfSeveralRunsIsAListOrOneAfterTheOther) {
  write_run(20);
  std::filesystem::copy(folder_ + "/run", folder_ + "/other", std::filesystem::copy_options::recursive);
  EXPECT_EQ(nlohmann::json::parse(run("report run other --json").output).size(), 2);
  EXPECT_THAT(run("report run other").output, HasSubstr("\nother: 20 steps"));
  EXPECT_THAT(run("report run ./run/metrics.jsonl").errors, HasSubstr("was given twice"));
}

TEST_F(Report, APageHoldsWhatItShowsAndNothingThatRuns) {
  write_run(50);
  const std::string hostile = "a<script>alert(1)<";
  std::filesystem::rename(folder_ + "/run", folder_ + "/" + hostile);
  const Result result = run("report '" + hostile + "' --output page.html");
  if (result.errors.find("without the chart library") != std::string::npos) {
    EXPECT_EQ(result.exit_code, 1);
    GTEST_SKIP() << "this build has no chart library";
  }
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const std::string page = read(folder_ + "/page.html");
  EXPECT_THAT(page, HasSubstr("a\\u003cscript\\u003ealert(1)\\u003c"));
  EXPECT_THAT(page, HasSubstr("<title>a&lt;script&gt;alert(1)&lt;"));
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, HasSubstr("Content-Security-Policy"));
  EXPECT_THAT(page, HasSubstr("Apache License"));
  EXPECT_LT(page.size(), 5e6);
}

TEST_F(Report, OfWhatIsNoRunAndNoStudyIsRefused) {
  const auto refused = [&](const std::string& arguments) {
    const Result result = run("report " + arguments + " --output page.html");
    EXPECT_EQ(result.exit_code, 2) << result.errors;
    EXPECT_FALSE(std::filesystem::exists(folder_ + "/page.html"));
    return result.errors;
  };
  write("damaged.sqlite", "no database");
  EXPECT_THAT(refused("damaged.sqlite"), HasSubstr("damaged.sqlite: is no SQLite file"));
  write("lone.sqlite", std::string("SQLite format 3") + '\0');
  EXPECT_THAT(refused("lone.sqlite"), HasSubstr("there is no lone.toml"));
  write("other.json", "{\"a\": 1}");
  EXPECT_THAT(refused("other.json"), HasSubstr("expected what `ridgeline simulate --json`"));
  write("cut.json", "{\"a\": ");
  EXPECT_THAT(refused("cut.json"), HasSubstr("cut.json"));
  write("mixed.jsonl", "{\"step\": 9}\n{\"step\": 5}\n");
  EXPECT_THAT(refused("mixed.jsonl"), HasSubstr("mixed.jsonl:2: step 5 stands after step 9"));
  std::filesystem::create_directories(folder_ + "/young/checkpoints");
  EXPECT_THAT(refused("young"), HasSubstr("has finished no step yet"));
  EXPECT_THAT(refused("missing"), HasSubstr("missing: cannot read: No such file"));
}

}  // namespace
