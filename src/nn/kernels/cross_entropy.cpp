#include "nn/kernels/cross_entropy.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cmath>
#include <cstring>

#include "nn/kernels/tensor_access.h"

#define RIDGELINE_TARGET_FILE "nn/kernels/cross_entropy_loops.inl"
#include "core/for_each_target.h"

namespace ridgeline::nn {
namespace {

void check(const at::Tensor& logits) {
  check_dense(logits, "cross_entropy: logits");
  RIDGELINE_ASSERT(logits.dim() == 2 && logits.size(1) > 0);
}

void check_rows(const at::Tensor& logits, const at::Tensor& tensor, at::ScalarType dtype, const char* name) {
  check_vector(tensor, logits.size(0), dtype, name);
  if (tensor.device() != logits.device()) throw InternalError("{}: not on the device of the logits", name);
}

// Calls row(format, r, logits of row r) for all rows.
template <typename Row>
void for_rows(const at::Tensor& logits, Row row) {
  const int64_t columns = logits.size(1);
  with_format(logits.scalar_type(), [&](auto format) {
    at::parallel_for(0, logits.size(0), rows_per_task(columns), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) row(format, r, stored<decltype(format)>(logits) + r * columns);
    });
  });
}

// Column of the target among `columns` that begin at `vocab_begin`, or -1.
int64_t local_column(int64_t target, int64_t vocab_begin, int64_t columns) {
  return target >= vocab_begin && target < vocab_begin + columns ? target - vocab_begin : -1;
}

template <typename Stored>
void clear_row(Stored* logits, int64_t columns) {
  std::memset(logits, 0, static_cast<size_t>(columns) * sizeof(Stored));
}

}  // namespace

at::Tensor row_max(const at::Tensor& logits) {
  check(logits);
  if (!logits.is_cpu()) return plain::row_max(logits);
  at::Tensor result = at::empty({logits.size(0)}, logits.options().dtype(at::kFloat));
  for_rows(logits, [&](auto format, int64_t r, auto* row) {
    floats(result)[r] = RIDGELINE_PICK(logits_max<decltype(format)>)(row, logits.size(1));
  });
  return result;
}

RowSums row_sums(const at::Tensor& logits, const at::Tensor& maximum, const at::Tensor& targets, int64_t vocab_begin) {
  check(logits);
  check_rows(logits, maximum, at::kFloat, "cross_entropy: maximum");
  check_rows(logits, targets, at::kLong, "cross_entropy: targets");
  if (!logits.is_cpu()) return plain::row_sums(logits, maximum, targets, vocab_begin);
  const int64_t columns = logits.size(1);
  const int64_t* target = targets.const_data_ptr<int64_t>();
  RowSums result{at::empty_like(maximum), at::empty_like(maximum)};
  for_rows(logits, [&](auto format, int64_t r, auto* row) {
    using Format = decltype(format);
    const int64_t column = target[r] < 0 ? -1 : local_column(target[r], vocab_begin, columns);
    floats(result.sum_exp)[r] = RIDGELINE_PICK(logits_sum_exp<Format>)(row, columns, floats(maximum)[r]);
    floats(result.target_logit)[r] = column < 0 ? 0.0f : RIDGELINE_PICK(logit_at<Format>)(row, column);
  });
  return result;
}

at::Tensor token_losses(const at::Tensor& maximum, const RowSums& sums, const at::Tensor& targets) {
  const at::Tensor losses = sums.sum_exp.log().add_(maximum).sub_(sums.target_logit);
  return losses.masked_fill_(targets.lt(0), 0.0);
}

void softmax_gradient(const at::Tensor& logits, const at::Tensor& maximum, const at::Tensor& sum_exp,
                      const at::Tensor& targets, int64_t vocab_begin, double scale) {
  check(logits);
  check_rows(logits, maximum, at::kFloat, "cross_entropy: maximum");
  check_rows(logits, sum_exp, at::kFloat, "cross_entropy: sum_exp");
  check_rows(logits, targets, at::kLong, "cross_entropy: targets");
  if (!logits.is_cpu()) return plain::softmax_gradient(logits, maximum, sum_exp, targets, vocab_begin, scale);
  const int64_t columns = logits.size(1);
  const int64_t* target = targets.const_data_ptr<int64_t>();
  for_rows(logits, [&](auto format, int64_t r, auto* row) {
    if (target[r] < 0) return clear_row(row, columns);
    RIDGELINE_PICK(logits_gradient<decltype(format)>)(row, columns, floats(maximum)[r], floats(sum_exp)[r],
                                                      local_column(target[r], vocab_begin, columns),
                                                      static_cast<float>(scale));
  });
}

at::Tensor loss_and_gradient(const at::Tensor& logits, const at::Tensor& targets, double scale) {
  check(logits);
  check_rows(logits, targets, at::kLong, "cross_entropy: targets");
  if (!logits.is_cpu()) {
    const at::Tensor maximum = plain::row_max(logits);
    const RowSums sums = plain::row_sums(logits, maximum, targets, 0);
    plain::softmax_gradient(logits, maximum, sums.sum_exp, targets, 0, scale);
    return token_losses(maximum, sums, targets);
  }
  const int64_t columns = logits.size(1);
  const int64_t* target = targets.const_data_ptr<int64_t>();
  at::Tensor losses = at::empty({logits.size(0)}, logits.options().dtype(at::kFloat));
  for_rows(logits, [&](auto format, int64_t r, auto* row) {
    using Format = decltype(format);
    if (target[r] < 0) {
      floats(losses)[r] = 0.0f;
      return clear_row(row, columns);
    }
    RIDGELINE_ASSERT(target[r] < columns);
    const float maximum = RIDGELINE_PICK(logits_max<Format>)(row, columns);
    const float sum = RIDGELINE_PICK(logits_sum_exp<Format>)(row, columns, maximum);
    floats(losses)[r] = std::log(sum) + maximum - RIDGELINE_PICK(logit_at<Format>)(row, target[r]);
    RIDGELINE_PICK(logits_gradient<Format>)(row, columns, maximum, sum, target[r], static_cast<float>(scale));
  });
  return losses;
}

at::Tensor plain::row_max(const at::Tensor& logits) {
  check(logits);
  return logits.amax(-1).to(at::kFloat);
}

RowSums plain::row_sums(const at::Tensor& logits, const at::Tensor& maximum, const at::Tensor& targets,
                        int64_t vocab_begin) {
  check(logits);
  const at::Tensor column = targets.sub(vocab_begin);
  const at::Tensor inside = column.ge(0).logical_and_(column.lt(logits.size(1))).logical_and_(targets.ge(0));
  const at::Tensor chosen = logits.gather(1, column.clamp(0, logits.size(1) - 1).unsqueeze(1)).squeeze(1);
  return {logits.to(at::kFloat).sub(maximum.unsqueeze(1)).exp_().sum(-1),
          at::where(inside, chosen.to(at::kFloat), at::zeros({}, maximum.options()))};
}

void plain::softmax_gradient(const at::Tensor& logits, const at::Tensor& maximum, const at::Tensor& sum_exp,
                             const at::Tensor& targets, int64_t vocab_begin, double scale) {
  check(logits);
  const at::Tensor column = targets.sub(vocab_begin);
  const at::Tensor inside = column.ge(0).logical_and_(column.lt(logits.size(1))).logical_and_(targets.ge(0));
  at::Tensor gradient = logits.to(at::kFloat).sub(maximum.unsqueeze(1)).exp_();
  gradient.mul_(sum_exp.reciprocal().mul_(scale).unsqueeze(1));
  gradient.scatter_add_(1, column.clamp(0, logits.size(1) - 1).unsqueeze(1),
                        inside.to(at::kFloat).mul_(-scale).unsqueeze(1));
  logits.copy_(gradient.masked_fill_(targets.lt(0).unsqueeze(1), 0.0));
}

}  // namespace ridgeline::nn
