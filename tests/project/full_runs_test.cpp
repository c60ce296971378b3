// Reported trainings beside projections: the shipped table keeps within what docs/projecting.md says of it.
#include "project/full_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "source_folder.h"

namespace ridgeline::project {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class FullRuns : public testing::Test {
 protected:
  void SetUp() override { setenv("RIDGELINE_MACHINES", RIDGELINE_SOURCE_DIR "/machines", 1); }
  void TearDown() override { unsetenv("RIDGELINE_MACHINES"); }
};

TEST_F(FullRuns, RowsThatSetNoFigureAreMet) {
  const auto runs = full_runs(simulate::read_table(RIDGELINE_SOURCE_DIR "/validation/full_runs.csv"));
  int64_t aside = 0, within = 0;
  for (const FullRun& run : runs) {
    EXPECT_NE(run.projection.has_value(), !run.why_not.empty()) << run.label;
    const auto error = run.device_hours_error();
    if (!run.aside || !error) continue;
    ++aside;
    within += std::abs(*error) <= 0.15;
    EXPECT_LT(std::abs(*error), 0.2) << run.label;
  }
  EXPECT_GE(aside, 8);
  EXPECT_GE(within, aside - 1);
}

TEST_F(FullRuns, TheStudysRatesGiveItsProjection) {
  int64_t found = 0;
  for (const FullRun& run : full_runs(simulate::read_table(RIDGELINE_SOURCE_DIR "/validation/full_runs.csv"))) {
    if (!run.label.starts_with("study")) continue;
    ++found;
    EXPECT_LT(std::abs(*run.days_error()), 0.05) << run.label;
  }
  EXPECT_EQ(found, 3);
}

TEST_F(FullRuns, OtherTablesAreRefusedAndGapsSaid) {
  const auto table = simulate::parse_table("source,gpu_count,global_batch\na,1,1\n", "t.csv");
  EXPECT_THAT([&] { full_runs(table); }, ThrowsMessage<InputError>(HasSubstr("t.csv: no column tokens_b")));
  const std::string header =
      "source,model,machine,gpu_count,layers,hidden,heads,seq_len,tp,pp,micro_batch,global_batch,recompute,tokens_b,"
      "device_hours,wall_days,energy_mwh\n";
  const auto why = [&](const std::string& row) {
    return full_runs(simulate::parse_table(header + row, "t.csv")).at(0).why_not;
  };
  EXPECT_THAT(why("a,m,frontier,8,4,512,8,512,1,1,1,8,full,,1,,\n"), HasSubstr("tokens_b is not known"));
  EXPECT_THAT(why("a,m,frontier,8,4,512,8,512,1,1,1,8,,1,1,,\n"), HasSubstr("recompute is not known"));
  EXPECT_THAT(why("a,m,frontier,8,4,512,8,512,1,1,3,8,full,1,1,,\n"), HasSubstr("micro_batch"));
  EXPECT_EQ(why("a,m,frontier,8,4,512,8,512,1,1,1,8,full,1,1,,\n"), "");
}

TEST(BatchRamps, AreReadStrictly) {
  const BatchRamp ramp = parse_ramp("192:16:9.8M", "--ramp");
  EXPECT_EQ(ramp.start, 192);
  EXPECT_EQ(ramp.increment, 16);
  EXPECT_EQ(ramp.samples, 9.8e6);
  for (const char* wrong : {"", "1", "1:2", ":2:3", "1::3", "a:2:3", "1:2:x", "1:2:-3"}) {
    EXPECT_THAT([&] { parse_ramp(wrong, "--ramp"); }, ThrowsMessage<InputError>(HasSubstr("--ramp"))) << wrong;
  }
}

}  // namespace
}  // namespace ridgeline::project
