#include "nn/kernel_reference.h"
#include "nn/kernels/accumulate.h"
#include "nn/kernels/gelu.h"

namespace ridgeline::nn {
namespace {

using GeluTest = KernelTest;
using AccumulateTest = KernelTest;
INSTANTIATE_TEST_SUITE_P(Kernels, GeluTest, every_target_and_format(), target_and_format);
INSTANTIATE_TEST_SUITE_P(Kernels, AccumulateTest, every_target_and_format(), target_and_format);

TEST_P(GeluTest, AgreesWithDoublePrecisionOnOddSizes) {
  for (const int64_t columns : {1, 7, 16, 37, 515}) {
    const at::Tensor x = normal({5, columns}, 3.0);
    const at::Tensor bias = normal({columns});
    for (const bool biased : {false, true}) {
      const at::Tensor b = biased ? bias : at::Tensor();
      const at::Tensor z = x.to(at::kDouble) + (biased ? bias.to(at::kDouble) : at::zeros({columns}, at::kDouble));
      const at::Tensor out = at::empty_like(x);
      gelu_forward(x, b, out);
      EXPECT_LT(difference(out, at::gelu(z, "tanh")), 2 * rounding()) << columns << biased;

      const at::Tensor dy = normal({5, columns});
      const at::Tensor gradient = dy.clone();
      gelu_backward(gradient, x, b);
      EXPECT_LT(difference(gradient, at::gelu_backward(dy.to(at::kDouble), z, "tanh")), 6 * rounding())
          << columns << biased;
    }
  }
}

TEST_P(GeluTest, PlainVersionAgrees) {
  const at::Tensor x = normal({9, 65});
  const at::Tensor bias = normal({65});
  const at::Tensor fused = at::empty_like(x), plain_out = at::empty_like(x);
  gelu_forward(x, bias, fused);
  plain::gelu_forward(x, bias, plain_out);
  EXPECT_LT(difference(fused, plain_out), 8 * rounding());
  const at::Tensor fused_gradient = at::ones_like(x), plain_gradient = at::ones_like(x);
  gelu_backward(fused_gradient, x, bias);
  plain::gelu_backward(plain_gradient, x, bias);
  EXPECT_LT(difference(fused_gradient, plain_gradient), 8 * rounding());
}

TEST_P(GeluTest, IsSafeFarFromZero) {
  const at::Tensor x = at::tensor({-1e4f, -100.0f, -20.0f, 20.0f, 100.0f, 1e4f, 0.0f, -0.0f}).to(dtype());
  const at::Tensor out = at::empty_like(x);
  gelu_forward(x, at::Tensor(), out);
  EXPECT_LT(difference(out, at::gelu(x.to(at::kDouble), "tanh")), rounding());
  const at::Tensor gradient = at::ones_like(x);
  gelu_backward(gradient, x, at::Tensor());
  EXPECT_LT(difference(gradient, at::tensor({0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.5, 0.5}, at::kDouble)), rounding());
}

TEST_P(GeluTest, NanStaysVisible) {
  const at::Tensor x = normal({40});
  x[17] = NAN;
  gelu_forward(x, at::Tensor(), x);
  EXPECT_TRUE(x[17].isnan().item<bool>());
  EXPECT_EQ(x.isnan().sum().item<int64_t>(), 1);
}

TEST_P(AccumulateTest, BiasGradientSumsColumns) {
  for (const auto& [rows, columns] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {3, 17}, {300, 129}, {1000, 300}, {0, 8}}) {
    const at::Tensor gradient = normal({rows, columns});
    const at::Tensor main = at::randn({columns}, at::kFloat);
    const at::Tensor expected = main.to(at::kDouble) + gradient.to(at::kDouble).sum(0);
    const at::Tensor plain_main = main.clone();
    bias_gradient(main, gradient);
    EXPECT_LT(difference(main, expected), 1e-5) << rows << "x" << columns;
    plain::bias_gradient(plain_main, gradient);
    EXPECT_LT(difference(plain_main, expected), 1e-5) << rows << "x" << columns;
  }
}

TEST_P(AccumulateTest, BiasGradientDoesNotDependOnThreads) {
  const at::Tensor gradient = normal({4096, 700});
  const int threads = at::get_num_threads();
  const at::Tensor one = at::zeros({700}, at::kFloat), several = at::zeros({700}, at::kFloat);
  at::set_num_threads(1);
  bias_gradient(one, gradient);
  at::set_num_threads(3);
  bias_gradient(several, gradient);
  at::set_num_threads(threads);
  EXPECT_TRUE(same_bits(one, several));
}

TEST_P(AccumulateTest, AddsIntoMainGradient) {
  for (const int64_t count : {1, 15, 1000, 100003}) {
    const at::Tensor gradient = normal({count});
    const at::Tensor main = at::randn({count}, at::kFloat);
    const at::Tensor expected = main + gradient.to(at::kFloat);
    add_into_main_gradient(main, gradient);
    EXPECT_TRUE(same_bits(main, expected)) << count;
    plain::add_into_main_gradient(main, gradient);
    EXPECT_TRUE(same_bits(main, expected + gradient.to(at::kFloat))) << count;
  }
}

// Every half and bfloat16 goes to fp32 and back unharmed, and rounding is to nearest even as ATen's.
TEST_P(AccumulateTest, FormatsConvertAsAtenDoes) {
  const at::Tensor bits = at::arange(-32768, 32768, at::kInt).to(at::kShort);
  if (dtype() != at::kFloat) {
    const at::Tensor values = bits.view(dtype());
    const at::Tensor main = at::zeros({65536}, at::kFloat);
    add_into_main_gradient(main, values);
    const at::Tensor expected = values.to(at::kFloat);
    EXPECT_TRUE(at::equal(main.isnan(), expected.isnan()));
    EXPECT_TRUE(at::equal(main.nan_to_num(), expected.nan_to_num()));
  }
}

TEST(AccumulateChecks, RefuseWhatDoesNotFit) {
  EXPECT_THROW(bias_gradient(at::zeros({3}), at::zeros({2, 4})), InternalError);
  EXPECT_THROW(add_into_main_gradient(at::zeros({4}, at::kHalf), at::zeros({4})), InternalError);
  EXPECT_THROW(gelu_forward(at::zeros({4, 4}).t(), {}, at::zeros({4, 4})), InternalError);
  EXPECT_THROW(gelu_forward(at::zeros({4}, at::kDouble), {}, at::zeros({4}, at::kDouble)), InternalError);
}

}  // namespace
}  // namespace ridgeline::nn
