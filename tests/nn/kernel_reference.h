// What the tests of kernels share: every CPU target, every storage format, and comparisons in double.
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "core/cpu_target.h"
#include "core/error.h"

namespace ridgeline::nn {

// Runs a test on each target that this CPU has and in each format.
struct KernelTest : testing::TestWithParam<std::tuple<CpuTarget, at::ScalarType>> {
  void SetUp() override {
    limit_cpu_target(std::get<0>(GetParam()));
    if (cpu_target() != std::get<0>(GetParam()))
      GTEST_SKIP() << "this CPU lacks " << to_string(std::get<0>(GetParam()));
    at::manual_seed(20240607);
  }
  void TearDown() override { limit_cpu_target(CpuTarget::avx512); }

  at::ScalarType dtype() const { return std::get<1>(GetParam()); }
  // Relative rounding error of one operation in the format.
  double rounding() const { return dtype() == at::kFloat ? 0x1p-23 : dtype() == at::kHalf ? 0x1p-11 : 0x1p-8; }
  at::Tensor normal(at::IntArrayRef sizes, double scale = 1.0) const {
    return at::randn(sizes, at::kFloat).mul_(scale).to(dtype());
  }
};

inline std::string target_and_format(const testing::TestParamInfo<KernelTest::ParamType>& info) {
  return std::string(to_string(std::get<0>(info.param))) + "_" + c10::toString(std::get<1>(info.param));
}

// For INSTANTIATE_TEST_SUITE_P(Name, KernelTest, every_target_and_format(), target_and_format);
inline auto every_target_and_format() {
  return testing::Combine(testing::Values(CpuTarget::baseline, CpuTarget::avx2, CpuTarget::avx512),
                          testing::Values(at::kFloat, at::kBFloat16, at::kHalf));
}

// max |a - b| / (1 + |b|).
inline double difference(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor expected = b.to(at::kDouble);
  return a.to(at::kDouble).sub(expected).abs().div(expected.abs().add(1.0)).max().item<double>();
}

inline bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && at::equal(a, b);
}

}  // namespace ridgeline::nn
