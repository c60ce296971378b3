#include "optim/loss_scale.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace ridgeline::optim {
namespace {

spec::PrecisionSpec fp16(double scale = 1024, int64_t window = 3) {
  spec::PrecisionSpec precision;
  precision.compute = spec::Precision::fp16;
  precision.initial_loss_scale = scale;
  precision.loss_scale_window = window;
  return precision;
}

TEST(LossScale, IsOneOutsideFp16) {
  LossScale scale{spec::PrecisionSpec{}};
  EXPECT_EQ(scale.scale(), 1.0);
  scale.update(true);
  scale.update(false);
  EXPECT_EQ(scale.scale(), 1.0);
}

TEST(LossScale, HalvesOnOverflowAndDoublesAfterTheWindow) {
  LossScale scale{fp16()};
  scale.update(true);
  EXPECT_EQ(scale.scale(), 512.0);
  scale.update(false);
  scale.update(false);
  scale.update(true);  // starts the count anew
  EXPECT_EQ(scale.scale(), 256.0);
  scale.update(false);
  scale.update(false);
  EXPECT_EQ(scale.scale(), 256.0);
  scale.update(false);
  EXPECT_EQ(scale.scale(), 512.0);
  EXPECT_EQ(scale.good_steps(), 0);
}

TEST(LossScale, SaysWhenNoScaleHelps) {
  LossScale scale{fp16(2)};
  scale.update(true);
  EXPECT_EQ(scale.scale(), 1.0);
  EXPECT_THROW(scale.update(true), Failure);
}

TEST(LossScale, StopsGrowing) {
  LossScale scale{fp16(65536, 1)};
  for (int i = 0; i < 200; ++i) scale.update(false);
  EXPECT_LE(scale.scale(), 0x1p32);
}

TEST(LossScale, ContinuesFromItsState) {
  LossScale scale{fp16()};
  scale.update(true);
  scale.update(false);
  LossScale restored{fp16()};
  restored.restore(nlohmann::json::parse(scale.state().dump()));
  for (const bool overflow : {false, false, true, false}) {
    EXPECT_EQ(restored.scale(), scale.scale());
    EXPECT_EQ(restored.good_steps(), scale.good_steps());
    scale.update(overflow), restored.update(overflow);
  }
}

TEST(LossScale, TakesNothingFromAnotherPrecision) {
  LossScale fresh{fp16()}, fp32{spec::PrecisionSpec{}};
  fresh.restore(fp32.state());
  EXPECT_EQ(fresh.scale(), 1024.0);
  fp32.restore(fresh.state());
  EXPECT_EQ(fp32.scale(), 1.0);
}

TEST(LossScale, RefusesBadState) {
  LossScale scale{fp16()};
  for (const char* text :
       {"[]", "{}", R"({"dynamic": true, "scale": 4})", R"({"dynamic": true, "scale": "4", "good_steps": 1})",
        R"({"dynamic": true, "scale": -4, "good_steps": 1})", R"({"dynamic": true, "scale": 1e300, "good_steps": 1})",
        R"({"dynamic": true, "scale": 4, "good_steps": -1})", R"({"dynamic": true, "scale": 4, "good_steps": 1.5})"}) {
    EXPECT_THROW(scale.restore(nlohmann::json::parse(text)), InputError) << text;
  }
  EXPECT_EQ(scale.scale(), 1024.0);
}

}  // namespace
}  // namespace ridgeline::optim
