// The recorded memory of stages on Frontier and LUMI.
#include "simulate/measured_memory.h"
#include "source_folder.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ridgeline::simulate {
namespace {

TEST(MeasuredMemory, RecordedStagesAreMet) {
  setenv("RIDGELINE_MACHINES", RIDGELINE_SOURCE_DIR "/machines", 1);
  const auto rows = validate_memory(read_table(RIDGELINE_SOURCE_DIR "/validation/memory.csv"), "");
  ASSERT_EQ(rows.size(), 25u);
  for (const MeasuredMemory& row : rows) {
    ASSERT_EQ(row.why_not, "");
    // The last stage of LUMI's runs holds 0.6 GiB between steps that no part of the model accounts for.
    const bool is_last = row.label.ends_with("stage 7") && row.source.starts_with("LUMI");
    EXPECT_LT(std::abs(row.error()), is_last ? 0.04 : 0.015) << row.label;
    EXPECT_LT(std::abs(row.predicted_allocated / row.allocated - 1), is_last ? 0.04 : 0.012) << row.label;
  }
  for (const Accuracy& accuracy : accuracies(rows)) EXPECT_LT(accuracy.mean_absolute_error, 0.015) << accuracy.source;
}

}  // namespace
}  // namespace ridgeline::simulate
