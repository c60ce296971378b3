// SwiGLU and rotation: the kernels of Llama-like models that have no place in the GPT family.
#include "nn/kernel_reference.h"
#include "nn/kernels/rotary.h"
#include "nn/kernels/swiglu.h"
#include "nn/rotary.h"

namespace ridgeline::nn {
namespace {

using SwigluTest = KernelTest;
using RotateTest = KernelTest;
INSTANTIATE_TEST_SUITE_P(Kernels, SwigluTest, every_target_and_format(), target_and_format);
INSTANTIATE_TEST_SUITE_P(Kernels, RotateTest, every_target_and_format(), target_and_format);

TEST_P(SwigluTest, AgreesWithDoublePrecision) {
  for (const int64_t columns : {1, 7, 16, 515}) {
    const at::Tensor gate = normal({5, columns}, 3.0), up = normal({5, columns}), dy = normal({5, columns});
    const at::Tensor g = gate.to(at::kDouble).requires_grad_(true), u = up.to(at::kDouble).requires_grad_(true);
    const at::Tensor expected = at::silu(g) * u;
    expected.backward(dy.to(at::kDouble));
    const at::Tensor out = at::empty_like(gate), plain_out = at::empty_like(gate);
    swiglu_forward(gate, up, out);
    plain::swiglu_forward(gate, up, plain_out);
    EXPECT_LT(difference(out, expected.detach()), 3 * rounding());
    EXPECT_LT(difference(plain_out, expected.detach()), 3 * rounding());
    const at::Tensor plain_gate = gate.clone(), plain_up = up.clone();
    swiglu_backward(dy, gate, up);
    plain::swiglu_backward(dy, plain_gate, plain_up);
    EXPECT_LT(difference(gate, g.grad()), 4 * rounding());
    EXPECT_LT(difference(up, u.grad()), 4 * rounding());
    EXPECT_LT(difference(plain_gate, g.grad()), 4 * rounding());
    EXPECT_LT(difference(plain_up, u.grad()), 4 * rounding());
  }
}

TEST_P(SwigluTest, IsSafeFarFromZero) {
  const at::Tensor gate = at::tensor({-1e4f, -100.0f, -20.0f, 20.0f, 100.0f, 1e4f, 0.0f}).to(dtype());
  const at::Tensor up = at::ones_like(gate), out = at::empty_like(gate);
  swiglu_forward(gate, up, out);
  EXPECT_LT(difference(out, at::silu(gate.to(at::kDouble))), rounding());
  const at::Tensor expected = at::silu(gate);
  swiglu_backward(at::ones_like(gate), gate, up);
  EXPECT_LT(difference(gate, at::tensor({0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.5}, at::kDouble)), 1e-6);
  EXPECT_LT(difference(up, expected), 2 * rounding());
}

// Rows of a wider tensor, as a fused projection leaves them; positions in no order.
TEST_P(RotateTest, TurnsPairsAndBack) {
  for (const int64_t half : {1, 3, 16, 40}) {
    const int64_t rows = 70, heads = 3, width = heads * 2 * half;
    const at::Tensor angles = at::rand({11, half}, at::kFloat) * 6;
    const at::Tensor cosines = at::cos(angles).mul_(1.5), sines = at::sin(angles).mul_(1.5);
    const at::Tensor positions = at::randint(0, 11, {rows}, at::kLong);
    const at::Tensor wide = normal({rows, 3 * width}), before = wide.clone();
    const auto heads_of = [&](const at::Tensor& of) { return of.narrow(1, width, width).view({rows, heads, 2 * half}); };
    const at::Tensor x = heads_of(wide), original = heads_of(before).to(at::kDouble);
    rotate(x, cosines, sines, positions, /*back=*/false);
    const at::Tensor c = cosines.index_select(0, positions).unsqueeze(1).to(at::kDouble);
    const at::Tensor s = sines.index_select(0, positions).unsqueeze(1).to(at::kDouble);
    const at::Tensor a = original.narrow(2, 0, half), b = original.narrow(2, half, half);
    EXPECT_LT(difference(x, at::cat({a * c - b * s, b * c + a * s}, 2)), 3 * rounding());
    EXPECT_TRUE(same_bits(wide.narrow(1, 0, width), before.narrow(1, 0, width))) << "it wrote beside its heads";
    EXPECT_TRUE(same_bits(wide.narrow(1, 2 * width, width), before.narrow(1, 2 * width, width)));
    const at::Tensor by_plain = heads_of(before.clone());
    plain::rotate(by_plain, cosines, sines, positions, /*back=*/false);
    EXPECT_LT(difference(by_plain, x), 2 * rounding());
    // The transpose of a rotation scaled by 1.5 turns back and scales once more.
    rotate(x, cosines, sines, positions, /*back=*/true);
    plain::rotate(by_plain, cosines, sines, positions, /*back=*/true);
    EXPECT_LT(difference(x, original * 2.25), 8 * rounding());
    EXPECT_LT(difference(by_plain, original * 2.25), 8 * rounding());
  }
}

TEST(Rotary, ScoresDependOnDistanceAlone) {
  spec::ModelSpec model;
  model.hidden = 32;
  model.heads = 1;
  model.sequence = 64;
  const Rotary rotary(model, at::kCPU);
  const at::Tensor q = at::randn({1, 1, 32}), k = at::randn({1, 1, 32});
  const auto score = [&](int64_t query, int64_t key) {
    const at::Tensor a = q.clone(), b = k.clone();
    rotary.forward(a, at::full({1}, query, at::kLong));
    rotary.forward(b, at::full({1}, key, at::kLong));
    return (a * b).sum().item<double>();
  };
  EXPECT_NEAR(score(10, 3), score(57, 50), 1e-4);
  EXPECT_NEAR(score(0, 0), (q * k).sum().item<double>(), 1e-5);
  EXPECT_GT(std::abs(score(10, 3) - score(10, 9)), 1e-2);
}

}  // namespace
}  // namespace ridgeline::nn
