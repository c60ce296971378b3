#include "nn/kernel_reference.h"
#include "nn/kernels/rms_norm.h"

namespace ridgeline::nn {
namespace {

using RmsNormTest = KernelTest;
INSTANTIATE_TEST_SUITE_P(Kernels, RmsNormTest, every_target_and_format(), target_and_format);

constexpr double kEpsilon = 1e-5;

struct Case {
  at::Tensor x, weight, gradient;
};

Case make(const RmsNormTest& test, int64_t rows, int64_t columns) {
  return {test.normal({rows, columns}, 2.0) + 1, (test.normal({columns}, 0.2) + 1).to(test.dtype()),
          test.normal({rows, columns})};
}

struct Reference {
  at::Tensor out, dx, dweight;  // double
};

Reference reference(const Case& c) {
  const at::Tensor x = c.x.to(at::kDouble).detach().requires_grad_(true);
  const at::Tensor weight = c.weight.to(at::kDouble).detach().requires_grad_(true);
  const at::Tensor out = x * at::rsqrt(x.square().mean(-1, true) + kEpsilon) * weight;
  out.backward(c.gradient.to(at::kDouble));
  return {out.detach(), x.grad(), weight.grad()};
}

TEST_P(RmsNormTest, AgreesWithDoublePrecision) {
  for (const auto& [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{{1, 8}, {5, 37}, {70, 128}, {200, 515}}) {
    const Case c = make(*this, rows, columns);
    const Reference expected = reference(c);
    const RmsNormOutput result = rms_norm_forward(c.x, c.weight, kEpsilon);
    EXPECT_LT(difference(result.out, expected.out), 4 * rounding());
    EXPECT_TRUE(same_bits(rms_norm_recompute(c.x, result.rstd, c.weight), result.out));
    const at::Tensor dweight = at::randn({columns}, at::kFloat), before = dweight.clone();
    const at::Tensor dx = rms_norm_backward(c.gradient, c.x, result.rstd, c.weight, dweight);
    EXPECT_LT(difference(dx, expected.dx), 4 * rounding());
    EXPECT_LT(difference(dweight - before, expected.dweight), 1e-5);
    const at::Tensor residual = normal({rows, columns});
    const at::Tensor with_residual =
        rms_norm_backward(c.gradient, c.x, result.rstd, c.weight, at::zeros({columns}), residual);
    EXPECT_LT(difference(with_residual, expected.dx + residual.to(at::kDouble)), 4 * rounding());
  }
}

TEST_P(RmsNormTest, PlainVersionAgrees) {
  const Case c = make(*this, 40, 96);
  const at::Tensor residual = normal({40, 96});
  const RmsNormOutput fused = rms_norm_forward(c.x, c.weight, kEpsilon);
  const RmsNormOutput by_plain = plain::rms_norm_forward(c.x, c.weight, kEpsilon);
  EXPECT_EQ(by_plain.rstd.scalar_type(), at::kFloat);
  EXPECT_EQ(by_plain.rstd.sizes(), fused.rstd.sizes());
  EXPECT_LT(difference(fused.out, by_plain.out), 4 * rounding());
  const at::Tensor weight1 = at::zeros({96}), weight2 = at::zeros({96});
  const at::Tensor dx1 = rms_norm_backward(c.gradient, c.x, fused.rstd, c.weight, weight1, residual);
  const at::Tensor dx2 = plain::rms_norm_backward(c.gradient, c.x, fused.rstd, c.weight, weight2, residual);
  EXPECT_EQ(dx2.scalar_type(), dtype());
  EXPECT_LT(difference(dx1, dx2), 8 * rounding());
  EXPECT_LT(difference(weight1, weight2), 1e-5);
}

TEST_P(RmsNormTest, DoesNotDependOnThreads) {
  const Case c = make(*this, 600, 300);
  const int threads = at::get_num_threads();
  std::vector<std::vector<at::Tensor>> results;
  for (const int count : {1, 3}) {
    at::set_num_threads(count);
    const RmsNormOutput f = rms_norm_forward(c.x, c.weight, kEpsilon);
    const at::Tensor dweight = at::zeros({300});
    const at::Tensor dx = rms_norm_backward(c.gradient, c.x, f.rstd, c.weight, dweight);
    results.push_back({f.out, f.rstd, dx, dweight});
  }
  at::set_num_threads(threads);
  for (size_t i = 0; i < results[0].size(); ++i) EXPECT_TRUE(same_bits(results[0][i], results[1][i])) << i;
}

}  // namespace
}  // namespace ridgeline::nn
