#include "optim/gradient_norm.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/cpu_target.h"
#include "core/error.h"

namespace ridgeline::optim {
namespace {

TEST(GradientNorm, AgreesWithDoublePrecisionOnEveryTarget) {
  at::manual_seed(3);
  for (const CpuTarget target : {CpuTarget::baseline, CpuTarget::avx2, CpuTarget::avx512}) {
    limit_cpu_target(target);
    for (const int64_t elements : {0, 1, 31, 65536, 200001}) {
      const at::Tensor gradient = at::randn({elements}, at::kFloat);
      const double expected = gradient.to(at::kDouble).square().sum().item<double>();
      EXPECT_NEAR(sum_of_squares(gradient), expected, 1e-12 * (1 + expected)) << elements;
      const GradientPart part{gradient, 1.0};
      EXPECT_NEAR(plain::weighted_square_sum({&part, 1}, at::kCPU).item<double>(), expected, 1e-5 * (1 + expected));
    }
  }
  limit_cpu_target(CpuTarget::avx512);
}

TEST(GradientNorm, CountsEachPartWithItsWeight) {
  const std::vector<GradientPart> parts = {
      {at::full({10}, 2.0f), 0.5}, {at::full({3}, 3.0f), 1.0}, {at::zeros({0}), 1.0}};
  for (const at::Tensor& sum : {weighted_square_sum(parts, at::kCPU), plain::weighted_square_sum(parts, at::kCPU)}) {
    EXPECT_EQ(sum.scalar_type(), at::kDouble);
    EXPECT_EQ(sum.dim(), 0);
    EXPECT_NEAR(sum.item<double>(), 0.5 * 40 + 27, 1e-4);
  }
  EXPECT_EQ(weighted_square_sum({}, at::kCPU).item<double>(), 0.0);
  EXPECT_EQ(plain::weighted_square_sum({}, at::kCPU).item<double>(), 0.0);
}

TEST(GradientNorm, DoesNotDependOnThreads) {
  at::manual_seed(4);
  const at::Tensor gradient = at::randn({1'000'003}, at::kFloat);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const double one = sum_of_squares(gradient);
  at::set_num_threads(3);
  const double several = sum_of_squares(gradient);
  at::set_num_threads(threads);
  EXPECT_EQ(one, several);
}

TEST(GradientNorm, HoldsLargeValuesAndShowsBadOnes) {
  EXPECT_DOUBLE_EQ(sum_of_squares(at::full({4}, 1e30f)), 4 * std::pow(static_cast<double>(1e30f), 2));
  EXPECT_TRUE(std::isinf(sum_of_squares(at::full({1}, INFINITY))));
  const at::Tensor bad = at::zeros({100});
  bad[63] = NAN;
  EXPECT_TRUE(std::isnan(sum_of_squares(bad)));
  EXPECT_THROW(sum_of_squares(at::zeros({4}, at::kHalf)), InternalError);
}

}  // namespace
}  // namespace ridgeline::optim
