#include "nn/hidden_dropout.h"

#include <algorithm>

#include "core/error.h"
#include "nn/kernels/dropout.h"

namespace ridgeline::nn {
namespace {

bool drops(const Context& context, const MicroBatch& batch) { return batch.training && context.model.dropout > 0; }

// The places in their sample of tokens from the `first` that is here on, as far as they follow each other.
spec::Range places_from(const MicroBatch& batch, int64_t first) {
  if (batch.places.empty()) return {first, batch.sequence};
  for (const spec::Range& places : batch.places) {
    if (first < places.size()) return {places.begin + first, places.end};
    first -= places.size();
  }
  throw InternalError("a token beyond the {} of a sample", batch.sequence);
}

// Calls apply(first row, rows, place) for the rows of this rank, one sample after the other.
template <typename Apply>
void for_each_sample(const Context& context, const MicroBatch& batch, int64_t site, Apply&& apply) {
  const uint64_t key = dropout_key(context.seed, batch.step, site);
  const spec::Range rows = context.local_rows(batch.tokens_total());
  const int64_t* samples = batch.samples.data_ptr<int64_t>();
  for (int64_t row = rows.begin; row < rows.end;) {
    const int64_t sample = row / batch.sequence;
    const spec::Range places = places_from(batch, row % batch.sequence);
    const int64_t end = std::min(rows.end, row + places.size());
    apply(row - rows.begin, end - row, DropoutPlace{key, places.begin, {samples + sample, 1}, 0});
    row = end;
  }
}

// Rows as [positions, one sample, channels].
at::Tensor sample_rows(const at::Tensor& tensor, int64_t first, int64_t rows) {
  return tensor.narrow(0, first, rows).unsqueeze(1);
}

}  // namespace

at::Tensor add_bias_dropout_residual(at::Tensor branch, const at::Tensor& bias, const at::Tensor& residual,
                                     const Context& context, const MicroBatch& batch, int64_t site) {
  if (bias.defined()) branch.add_(bias);
  if (!drops(context, batch)) return branch.add_(residual);
  const DropoutRate rate(context.model.dropout);
  for_each_sample(context, batch, site, [&](int64_t first, int64_t rows, const DropoutPlace& place) {
    const at::Tensor part = sample_rows(branch, first, rows);
    apply_dropout_and_add(part, sample_rows(residual, first, rows), rate, place, part);
  });
  return branch;
}

at::Tensor hidden_dropout(const at::Tensor& input, const Context& context, const MicroBatch& batch, int64_t site) {
  if (!drops(context, batch)) return input;
  at::Tensor output = at::empty_like(input);
  const DropoutRate rate(context.model.dropout);
  for_each_sample(context, batch, site, [&](int64_t first, int64_t rows, const DropoutPlace& place) {
    apply_dropout(sample_rows(input, first, rows), rate, place, sample_rows(output, first, rows));
  });
  return output;
}

}  // namespace ridgeline::nn
