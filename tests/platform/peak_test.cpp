#include "platform/peak.h"

#include <gtest/gtest.h>

#include "platform/device.h"
#include "platform/torch_compat.h"

namespace ridgeline::platform {
namespace {

using spec::Precision;

TEST(PeakFlops, KnowsDevicesByTheirExactName) {
  EXPECT_EQ(peak_flops("NVIDIA A100-SXM4-40GB", Precision::bf16), 312e12);
  EXPECT_EQ(peak_flops("NVIDIA A100-SXM4-40GB", Precision::fp32), 19.5e12);
  EXPECT_EQ(peak_flops("NVIDIA H200", Precision::fp16), 989.5e12);
  // Half of the module's 383: torch shows each of its two dies.
  EXPECT_EQ(peak_flops("AMD Instinct MI250X", Precision::bf16), 191.5e12);
}

TEST(PeakFlops, GuessesNothing) {
  EXPECT_EQ(peak_flops("NVIDIA A100", Precision::bf16), std::nullopt);
  EXPECT_EQ(peak_flops("nvidia h200", Precision::bf16), std::nullopt);
  EXPECT_EQ(peak_flops("NVIDIA H200 MIG 1g.18gb", Precision::bf16), std::nullopt);
  EXPECT_EQ(peak_flops("", Precision::fp32), std::nullopt);
  EXPECT_EQ(peak_flops(Device::select("cpu").name(), Precision::fp32), std::nullopt);
}

TEST(PeakFlops, HasNoFigureForAPrecisionThatTheDeviceLacks) {
  EXPECT_EQ(peak_flops("Tesla V100-SXM2-16GB", Precision::bf16), std::nullopt);
  EXPECT_EQ(peak_flops("Tesla V100-SXM2-16GB", Precision::fp16), 125e12);
}

TEST(TorchCompat, KnowsThisVersion) { EXPECT_GE(torch_version, 211); }

}  // namespace
}  // namespace ridgeline::platform
