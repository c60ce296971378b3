// The two CPU kernels of attention against the formula differentiated by autograd in double precision, with dropout as
// an explicit mask of core/random.h's decisions.
#include "nn/attention.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "core/random.h"
#include "nn/attention_plain.h"
#include "nn/small_model.h"

namespace ridgeline::nn {
namespace {

struct Shape {
  int64_t batch, heads, sequence, head_size;
  int64_t key_heads = 0;  // 0: as many as heads
  int64_t window = 0;

  int64_t keys_of() const { return key_heads > 0 ? key_heads : heads; }
};

struct Tensors {
  at::Tensor q, k, v, output_gradient;
  AttentionPattern pattern;
};

// Query, key and value as views of one tensor, as the QKV projection gives them.
Tensors random_tensors(const Shape& shape, at::ScalarType type) {
  at::manual_seed(11);
  const int64_t heads = shape.heads, key_heads = shape.keys_of();
  const at::Tensor qkv = at::randn({shape.batch, shape.sequence, heads + 2 * key_heads, shape.head_size}).to(type);
  const auto part = [&](int64_t first, int64_t count) { return qkv.narrow(2, first, count).transpose(1, 2); };
  const at::Tensor gradient = at::randn({shape.batch, shape.sequence, shape.heads, shape.head_size}).to(type);
  return {part(0, heads), part(heads, key_heads), part(heads + key_heads, key_heads), gradient.transpose(1, 2),
          {1.0 / std::sqrt(static_cast<double>(shape.head_size)), shape.window, {}, {}}};
}

struct Result {
  at::Tensor output, log_sum_exp, dq, dk, dv;
};

// `mask` [batch, heads, queries, keys] multiplies the probabilities.
Result by_autograd(const Tensors& in, const at::Tensor& mask) {
  std::vector<at::Tensor> leaves;
  for (const at::Tensor& tensor : {in.q, in.k, in.v}) {
    leaves.push_back(tensor.to(at::kDouble).contiguous().requires_grad_());
  }
  const at::Tensor distance = at::arange(in.q.size(2)).unsqueeze(1) - at::arange(in.k.size(2)).unsqueeze(0);
  at::Tensor unseen = distance.lt(0);
  if (in.pattern.window > 0) unseen = unseen.logical_or(distance.ge(in.pattern.window));
  const int64_t group = in.q.size(1) / in.k.size(1);
  const at::Tensor k = leaves[1].repeat_interleave(group, 1), v = leaves[2].repeat_interleave(group, 1);
  const at::Tensor scores =
      (at::matmul(leaves[0], k.transpose(-2, -1)) * in.pattern.scale).masked_fill(unseen, -1e300);
  const at::Tensor output = at::matmul(at::softmax(scores, -1) * mask, v);
  const auto gradients = torch::autograd::grad({output}, leaves, {in.output_gradient.to(at::kDouble).contiguous()});
  return {output.detach(), at::logsumexp(scores, -1).detach(), gradients[0], gradients[1], gradients[2]};
}

AttentionPattern with(AttentionPattern pattern, const AttentionDropout& dropout) {
  pattern.dropout = dropout;
  return pattern;
}

Result by_kernel(const Tensors& in, const AttentionDropout& dropout) {
  const AttentionPattern pattern = with(in.pattern, dropout);
  const AttentionOutput forward = attention_forward(in.q, in.k, in.v, pattern);
  const AttentionGradients back = attention_backward(in.output_gradient, in.q, in.k, in.v, forward, pattern);
  return {forward.output, forward.log_sum_exp, back.q, back.k, back.v};
}

Result by_plain(const Tensors& in, const AttentionDropout& dropout) {
  const AttentionPattern pattern = with(in.pattern, dropout);
  const AttentionOutput forward = plain_attention_forward(in.q, in.k, in.v, pattern);
  const AttentionGradients back = plain_attention_backward(in.output_gradient, in.q, in.k, in.v, forward, pattern);
  return {forward.output, forward.log_sum_exp, back.q, back.k, back.v};
}

void expect_near(const Result& actual, const Result& expected, double bound, int64_t window) {
  EXPECT_EQ(actual.log_sum_exp.scalar_type(), at::kFloat);
  EXPECT_LT(relative_error(actual.output, expected.output), bound);
  EXPECT_LT(relative_error(actual.log_sum_exp, expected.log_sum_exp), bound);
  EXPECT_LT(relative_error(actual.dv, expected.dv), bound);
  // Of one key there is but one softmax, whose gradient is zero.
  if (expected.dq.size(2) == 1 || window == 1) {
    EXPECT_LT(actual.dq.abs().max().item<double>(), bound);
    EXPECT_LT(actual.dk.abs().max().item<double>(), bound);
  } else {
    EXPECT_LT(relative_error(actual.dq, expected.dq), bound);
    EXPECT_LT(relative_error(actual.dk, expected.dk), bound);
  }
}

double bound_of(at::ScalarType type) { return type == at::kFloat ? 3e-6 : type == at::kHalf ? 3e-3 : 2e-2; }

const Shape kShapes[] = {{1, 1, 1, 8},           {2, 3, 7, 8},             {1, 4, 33, 24},
                         {3, 2, 130, 16},        {2, 6, 33, 16, 2},        {1, 4, 130, 8, 1},
                         {2, 2, 130, 16, 0, 20}, {1, 8, 1100, 16, 4, 100}, {1, 2, 9, 8, 1, 1}, {1, 1, 40, 8}};

// Decisions one by one, from the definition.
at::Tensor explicit_mask(const Shape& shape, const AttentionDropout& dropout) {
  const DropoutRate rate(dropout.probability);
  at::Tensor mask = at::empty({shape.batch, shape.heads, shape.sequence, shape.sequence}, at::kDouble);
  double* at = mask.data_ptr<double>();
  for (int64_t sample = 0; sample < shape.batch; ++sample) {
    for (int64_t head = dropout.first_head; head < dropout.first_head + shape.heads; ++head) {
      for (int64_t query = 0; query < shape.sequence; ++query) {
        for (int64_t key = 0; key < shape.sequence; ++key) {
          const bool keeps = dropout_keeps(rate, dropout.key, dropout.samples.data_ptr<int64_t>()[sample], query,
                                           head * shape.sequence + key);
          *at++ = keeps ? rate.scale : 0.0;
        }
      }
    }
  }
  return mask;
}

class AttentionTest : public testing::TestWithParam<at::ScalarType> {};

TEST_P(AttentionTest, BothKernelsEqualAutograd) {
  EXPECT_EQ(attention_kernel(at::kCPU, GetParam(), {}), "flash (cpu)");
  AttentionPattern dropping;
  dropping.dropout.probability = 0.1;
  EXPECT_EQ(attention_kernel(at::kCPU, GetParam(), dropping), "plain");
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(shape.sequence);
    const Tensors in = random_tensors(shape, GetParam());
    const Result expected = by_autograd(in, at::ones({1}, at::kDouble));
    expect_near(by_kernel(in, {}), expected, bound_of(GetParam()), shape.window);
    expect_near(by_plain(in, {}), expected, bound_of(GetParam()), shape.window);
  }
}

TEST_P(AttentionTest, DropoutIsTheMaskOfTheDefinition) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(shape.sequence);
    const Tensors in = random_tensors(shape, GetParam());
    const AttentionDropout dropout{0.3, dropout_key(9, 4, 6), 2, at::arange(100, 100 + 5 * shape.batch, 5, at::kLong)};
    const at::Tensor mask = explicit_mask(shape, dropout);
    const Result actual = by_kernel(in, dropout), expected = by_autograd(in, mask);
    if (shape.sequence == 1 && mask.abs().max().item<double>() == 0.0) {
      EXPECT_EQ(actual.output.abs().max().item<double>(), 0.0);
      continue;
    }
    expect_near(actual, expected, bound_of(GetParam()), shape.window);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, AttentionTest, testing::Values(at::kFloat, at::kBFloat16, at::kHalf),
                         [](const auto& info) { return std::string(c10::toString(info.param)); });

// What the ranks of a tensor axis do: each has some of the heads, and they drop what one rank would.
TEST(AttentionDropout, HeadsMayBeSharedOut) {
  const Shape shape{2, 4, 9, 8};
  const Tensors in = random_tensors(shape, at::kFloat);
  AttentionDropout dropout{0.3, dropout_key(9, 4, 6), 0, at::arange(2, at::kLong)};
  const at::Tensor whole = attention_forward(in.q, in.k, in.v, with(in.pattern, dropout)).output;
  for (const int64_t first : {0, 2}) {
    dropout.first_head = first;
    const auto half = [&](const at::Tensor& tensor) { return tensor.narrow(1, first, 2); };
    const at::Tensor part = attention_forward(half(in.q), half(in.k), half(in.v), with(in.pattern, dropout)).output;
    EXPECT_LT(relative_error(part, half(whole)), 1e-6);
  }
}

}  // namespace
}  // namespace ridgeline::nn
