// Cross entropy over a vocabulary that may be cut over the tensor axis, for a chunk of rows of logits.
//
// Row r with target t has the loss log(sum_v e^(x_v - m)) + m - x_t, m the maximum over the whole vocabulary; its
// gradient is softmax(x) - onehot(t). Over several ranks: row_max, maximum over ranks; row_sums, sum over ranks of both
// results (one collective each); token_losses; softmax_gradient. On one rank: loss_and_gradient does all of it while a
// row is in the cache.
//
// Logits are [rows, local vocabulary] in fp32, bf16 or fp16, contiguous; arithmetic is fp32. Targets are int64 numbers
// in the whole vocabulary; kIgnoredTarget (or any negative number) means that the row has no loss and no gradient.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace ridgeline::nn {

inline constexpr int64_t kIgnoredTarget = -100;

// fp32 [rows].
at::Tensor row_max(const at::Tensor& logits);

struct RowSums {
  at::Tensor sum_exp;       // fp32 [rows]: sum of e^(x - maximum) over the local vocabulary
  at::Tensor target_logit;  // fp32 [rows]: the target's logit if it is in the local vocabulary, else 0
};

// `maximum`: fp32 [rows] over the whole vocabulary. The local vocabulary begins at `vocab_begin`.
RowSums row_sums(const at::Tensor& logits, const at::Tensor& maximum, const at::Tensor& targets, int64_t vocab_begin);

// fp32 [rows]: log(sum_exp) + maximum - target_logit, 0 for ignored rows. All arguments over the whole vocabulary.
at::Tensor token_losses(const at::Tensor& maximum, const RowSums& sums, const at::Tensor& targets);

// In place: logits become (softmax - onehot) * scale, 0 in ignored rows.
void softmax_gradient(const at::Tensor& logits, const at::Tensor& maximum, const at::Tensor& sum_exp,
                      const at::Tensor& targets, int64_t vocab_begin, double scale);

// All of it for a vocabulary that is not cut: returns the token losses; logits become their gradient.
at::Tensor loss_and_gradient(const at::Tensor& logits, const at::Tensor& targets, double scale);

// The same by plain tensor operations, on any device.
namespace plain {
at::Tensor row_max(const at::Tensor& logits);
RowSums row_sums(const at::Tensor& logits, const at::Tensor& maximum, const at::Tensor& targets, int64_t vocab_begin);
void softmax_gradient(const at::Tensor& logits, const at::Tensor& maximum, const at::Tensor& sum_exp,
                      const at::Tensor& targets, int64_t vocab_begin, double scale);
}  // namespace plain

}  // namespace ridgeline::nn
