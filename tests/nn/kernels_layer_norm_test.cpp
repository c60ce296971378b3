#include "nn/kernel_reference.h"
#include "nn/kernels/layer_norm.h"

namespace ridgeline::nn {
namespace {

using LayerNormTest = KernelTest;
INSTANTIATE_TEST_SUITE_P(Kernels, LayerNormTest, every_target_and_format(), target_and_format);

constexpr double kEpsilon = 1e-5;

struct Case {
  at::Tensor x, weight, bias, gradient;
};

Case make(const LayerNormTest& test, int64_t rows, int64_t columns) {
  return {test.normal({rows, columns}, 2.0) + 3, (test.normal({columns}, 0.2) + 1).to(test.dtype()),
          test.normal({columns}, 0.2), test.normal({rows, columns})};
}

struct Reference {
  at::Tensor out, dx, dweight, dbias;  // double
};

Reference reference(const at::Tensor& x, const Case& c) {
  const at::Tensor xd = x.to(at::kDouble).detach().requires_grad_(true);
  const at::Tensor w = c.weight.to(at::kDouble).detach().requires_grad_(true);
  const at::Tensor b = c.bias.to(at::kDouble).detach().requires_grad_(true);
  const at::Tensor out = at::layer_norm(xd, xd.size(-1), w, b, kEpsilon);
  out.backward(c.gradient.to(at::kDouble));
  return {out.detach(), xd.grad(), w.grad(), b.grad()};
}

TEST_P(LayerNormTest, AgreesWithDoublePrecision) {
  for (const auto& [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{{1, 8}, {5, 37}, {70, 128}, {200, 515}}) {
    const Case c = make(*this, rows, columns);
    const Reference expected = reference(c.x, c);
    const LayerNormOutput result = layer_norm_forward(c.x, c.weight, c.bias, kEpsilon);
    EXPECT_LT(difference(result.out, expected.out), 4 * rounding());
    EXPECT_LT(difference(result.mean, c.x.to(at::kDouble).mean(-1)), 1e-6);
    const at::Tensor dweight = at::randn({columns}, at::kFloat), dbias = at::randn({columns}, at::kFloat);
    const at::Tensor weight_before = dweight.clone(), bias_before = dbias.clone();
    const at::Tensor dx = layer_norm_backward(c.gradient, c.x, result.mean, result.rstd, c.weight, dweight, dbias);
    EXPECT_LT(difference(dx, expected.dx), 4 * rounding());
    EXPECT_LT(difference(dweight - weight_before, expected.dweight), 1e-5);
    EXPECT_LT(difference(dbias - bias_before, expected.dbias), 1e-5);
  }
}

TEST_P(LayerNormTest, ResidualAdditionsAreTheSameAsApart) {
  const Case c = make(*this, 33, 101);
  const at::Tensor residual = normal({33, 101});
  const at::Tensor sum = at::empty_like(residual);
  const LayerNormOutput fused = layer_norm_add_forward(c.x, residual, sum, c.weight, c.bias, kEpsilon);
  EXPECT_TRUE(same_bits(sum, c.x + residual));
  const LayerNormOutput apart = layer_norm_forward(sum, c.weight, c.bias, kEpsilon);
  EXPECT_TRUE(same_bits(fused.out, apart.out));
  EXPECT_TRUE(same_bits(fused.rstd, apart.rstd));
  EXPECT_TRUE(same_bits(layer_norm_recompute(sum, apart.mean, apart.rstd, c.weight, c.bias), apart.out));

  const Reference expected = reference(sum, c);
  const at::Tensor dweight = at::zeros({101}, at::kFloat), dbias = at::zeros({101}, at::kFloat);
  const at::Tensor dx =
      layer_norm_backward(c.gradient, sum, apart.mean, apart.rstd, c.weight, dweight, dbias, residual);
  EXPECT_LT(difference(dx, expected.dx + residual.to(at::kDouble)), 4 * rounding());
}

TEST_P(LayerNormTest, PlainVersionAgrees) {
  const Case c = make(*this, 40, 96);
  const at::Tensor residual = normal({40, 96});
  const LayerNormOutput fused = layer_norm_forward(c.x, c.weight, c.bias, kEpsilon);
  const LayerNormOutput by_plain = plain::layer_norm_forward(c.x, c.weight, c.bias, kEpsilon);
  EXPECT_EQ(by_plain.mean.scalar_type(), at::kFloat);
  EXPECT_EQ(by_plain.mean.sizes(), fused.mean.sizes());
  EXPECT_LT(difference(fused.out, by_plain.out), 4 * rounding());
  EXPECT_LT(difference(plain::layer_norm_recompute(c.x, fused.mean, fused.rstd, c.weight, c.bias), fused.out),
            4 * rounding());
  const auto zeros = [] { return at::zeros({96}, at::kFloat); };
  const at::Tensor weight1 = zeros(), bias1 = zeros(), weight2 = zeros(), bias2 = zeros();
  const at::Tensor dx1 =
      layer_norm_backward(c.gradient, c.x, fused.mean, fused.rstd, c.weight, weight1, bias1, residual);
  const at::Tensor dx2 =
      plain::layer_norm_backward(c.gradient, c.x, fused.mean, fused.rstd, c.weight, weight2, bias2, residual);
  EXPECT_LT(difference(dx1, dx2), 8 * rounding());
  // ATen rounds statistics and parameter gradients to the dtype.
  EXPECT_LT(difference(weight1, weight2), 16 * rounding() + 1e-5);
  EXPECT_LT(difference(bias1, bias2), 16 * rounding() + 1e-5);
}

TEST_P(LayerNormTest, DoesNotDependOnThreads) {
  const Case c = make(*this, 600, 300);
  const int threads = at::get_num_threads();
  std::vector<std::vector<at::Tensor>> results;
  for (const int count : {1, 3}) {
    at::set_num_threads(count);
    const LayerNormOutput f = layer_norm_forward(c.x, c.weight, c.bias, kEpsilon);
    const at::Tensor dweight = at::zeros({300}, at::kFloat), dbias = at::zeros({300}, at::kFloat);
    const at::Tensor dx = layer_norm_backward(c.gradient, c.x, f.mean, f.rstd, c.weight, dweight, dbias);
    results.push_back({f.out, f.mean, f.rstd, dx, dweight, dbias});
  }
  at::set_num_threads(threads);
  for (size_t i = 0; i < results[0].size(); ++i) EXPECT_TRUE(same_bits(results[0][i], results[1][i])) << i;
}

TEST_P(LayerNormTest, KeepsPrecisionFarFromZero) {
  const at::Tensor x = (at::randn({4, 512}, at::kFloat) + 1000).to(dtype());
  const Case c{x, at::ones({512}, at::kFloat).to(dtype()), at::zeros({512}, at::kFloat).to(dtype()), x};
  const LayerNormOutput result = layer_norm_forward(x, c.weight, c.bias, kEpsilon);
  EXPECT_LT(difference(result.out, reference(x, c).out), std::max(1e-4, 4 * rounding()));
}

}  // namespace
}  // namespace ridgeline::nn
