#include "optim/adamw.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/cpu_target.h"
#include "core/error.h"

namespace ridgeline::optim {
namespace {

constexpr AdamWSettings kSettings{3e-3, 0.9, 0.95, 1e-8, 0.1};

struct Buffers {
  at::Tensor master, first, second, parameter;
};

Buffers start(int64_t elements, at::ScalarType dtype) {
  at::manual_seed(11);
  const at::Tensor master = at::randn({elements}, at::kFloat);
  return {master, at::zeros({elements}), at::zeros({elements}), dtype == at::kFloat ? master : master.to(dtype)};
}

at::Tensor gradient_of_step(int64_t elements, int64_t step) {
  at::manual_seed(static_cast<uint64_t>(1000 + step));
  return at::randn({elements}, at::kFloat).mul_(step % 7 == 3 ? 1e-4 : 1.0);
}

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return a.to(at::kDouble).sub(b.to(at::kDouble)).abs().max().item<double>();
}

struct AdamWTest : testing::TestWithParam<CpuTarget> {
  void SetUp() override {
    limit_cpu_target(GetParam());
    if (cpu_target() != GetParam()) GTEST_SKIP() << "this CPU lacks " << to_string(GetParam());
  }
  void TearDown() override { limit_cpu_target(CpuTarget::avx512); }
};
INSTANTIATE_TEST_SUITE_P(Optim, AdamWTest, testing::Values(CpuTarget::baseline, CpuTarget::avx2, CpuTarget::avx512),
                         [](const auto& info) { return std::string(to_string(info.param)); });

// Fifty steps beside the formula in double, with decay on some elements and others in no range.
TEST_P(AdamWTest, FollowsTheFormula) {
  constexpr int64_t elements = 1003;
  const std::vector<AdamWRange> ranges = {{0, 500, true}, {510, 517, false}, {517, 1003, true}};
  const Buffers b = start(elements, at::kFloat);
  const at::Tensor untouched = b.master.clone();
  std::vector<double> p(elements), m(elements), v(elements);
  for (int64_t i = 0; i < elements; ++i) p[i] = b.master[i].item<double>();
  for (int64_t step = 0; step < 50; ++step) {
    const at::Tensor gradient = gradient_of_step(elements, step);
    adamw_step(b.master, b.first, b.second, gradient, b.parameter, ranges, kSettings, step, 0.25);
    for (const AdamWRange& range : ranges) {
      for (int64_t i = range.begin; i < range.end; ++i) {
        const double g = 0.25 * gradient.data_ptr<float>()[i];
        if (range.decay) p[i] -= kSettings.learning_rate * kSettings.weight_decay * p[i];
        m[i] = kSettings.beta1 * m[i] + (1 - kSettings.beta1) * g;
        v[i] = kSettings.beta2 * v[i] + (1 - kSettings.beta2) * g * g;
        const double first = m[i] / (1 - std::pow(kSettings.beta1, step + 1));
        const double second = v[i] / (1 - std::pow(kSettings.beta2, step + 1));
        p[i] -= kSettings.learning_rate * first / (std::sqrt(second) + kSettings.epsilon);
      }
    }
  }
  for (int64_t i = 0; i < elements; ++i) ASSERT_NEAR(b.master[i].item<double>(), p[i], 3e-6) << i;
  EXPECT_TRUE(at::equal(b.master.slice(0, 500, 510), untouched.slice(0, 500, 510)));
}

TEST_P(AdamWTest, AgreesWithTorch) {
  constexpr int64_t elements = 40000;
  const std::vector<AdamWRange> all = {{0, elements, true}};
  const Buffers ours = start(elements, at::kFloat), torch = start(elements, at::kFloat),
                plain = start(elements, at::kFloat);
  for (int64_t step = 0; step < 50; ++step) {
    const at::Tensor gradient = gradient_of_step(elements, step);
    adamw_step(ours.master, ours.first, ours.second, gradient, ours.parameter, all, kSettings, step, 1.0);
    at::_fused_adamw_({torch.master}, {gradient.clone()}, {torch.first}, {torch.second}, {},
                      {at::full({}, static_cast<double>(step + 1))}, kSettings.learning_rate, kSettings.beta1,
                      kSettings.beta2, kSettings.weight_decay, kSettings.epsilon, false, false);
    plain::adamw_step(plain.master, plain.first, plain.second, gradient.clone(), plain.parameter, all, kSettings, step,
                      1.0);
  }
  EXPECT_LT(largest_difference(ours.master, torch.master), 1e-5);  // values up to 4: twenty roundings in fifty steps
  EXPECT_LT(largest_difference(ours.second, torch.second), 1e-6);
  EXPECT_LT(largest_difference(plain.master, torch.master), 1e-7);
}

TEST_P(AdamWTest, WritesTheRoundedParameter) {
  constexpr int64_t elements = 77;
  const std::vector<AdamWRange> ranges = {{0, 40, true}, {41, 77, false}};
  for (const at::ScalarType dtype : {at::kBFloat16, at::kHalf}) {
    const Buffers b = start(elements, dtype), by_plain = start(elements, dtype);
    b.parameter[40] = 123.0;
    for (int64_t step = 0; step < 3; ++step) {
      const at::Tensor gradient = gradient_of_step(elements, step);
      adamw_step(b.master, b.first, b.second, gradient, b.parameter, ranges, kSettings, step, 0.5);
      plain::adamw_step(by_plain.master, by_plain.first, by_plain.second, gradient.clone(), by_plain.parameter, ranges,
                        kSettings, step, 0.5);
    }
    EXPECT_EQ(b.parameter[40].item<double>(), 123.0);
    const at::Tensor expected = b.master.to(dtype);
    expected[40] = 123.0;
    EXPECT_TRUE(at::equal(b.parameter, expected));
    EXPECT_LT(largest_difference(b.master, by_plain.master), 1e-6);
    EXPECT_TRUE(at::equal(by_plain.parameter.slice(0, 0, 40), by_plain.master.slice(0, 0, 40).to(dtype)));
  }
}

// ZeRO cuts the buffers, machines differ in threads: neither may change a bit.
TEST_P(AdamWTest, DoesNotDependOnThreadsOrCuts) {
  constexpr int64_t elements = 200003, cut = 77777;
  const std::vector<AdamWRange> all = {{0, elements, true}}, left = {{0, cut, true}},
                                right = {{0, elements - cut, true}};
  const Buffers whole = start(elements, at::kBFloat16), parts = start(elements, at::kBFloat16);
  const at::Tensor gradient = gradient_of_step(elements, 1);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  adamw_step(whole.master, whole.first, whole.second, gradient, whole.parameter, all, kSettings, 4, 1.0);
  at::set_num_threads(3);
  const auto apply = [&](int64_t begin, int64_t size, const std::vector<AdamWRange>& ranges) {
    adamw_step(parts.master.narrow(0, begin, size), parts.first.narrow(0, begin, size),
               parts.second.narrow(0, begin, size), gradient.narrow(0, begin, size),
               parts.parameter.narrow(0, begin, size), ranges, kSettings, 4, 1.0);
  };
  apply(0, cut, left);
  apply(cut, elements - cut, right);
  at::set_num_threads(threads);
  EXPECT_TRUE(at::equal(whole.master, parts.master));
  EXPECT_TRUE(at::equal(whole.second, parts.second));
  EXPECT_TRUE(at::equal(whole.parameter, parts.parameter));
}

TEST(AdamWChecks, RefuseWhatDoesNotFit) {
  const Buffers b = start(8, at::kFloat);
  const at::Tensor gradient = at::zeros({8});
  const std::vector<AdamWRange> outside = {{0, 9, true}}, all = {{0, 8, true}};
  EXPECT_THROW(adamw_step(b.master, b.first, b.second, gradient, b.master, outside, kSettings, 0, 1.0), InternalError);
  EXPECT_THROW(adamw_step(b.master, b.first, b.second, gradient, b.master, all, kSettings, -1, 1.0), InternalError);
  EXPECT_THROW(adamw_step(b.master, b.first, b.second, at::zeros({7}), b.master, all, kSettings, 0, 1.0),
               InternalError);
}

}  // namespace
}  // namespace ridgeline::optim
