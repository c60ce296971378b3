#include "nn/embedding.h"

#include "nn/dropout_sites.h"
#include "nn/hidden_dropout.h"
#include "nn/redistribute.h"

namespace ridgeline::nn {
namespace {

struct EmbeddingSaved : SavedRecord {  // tokens belong to the micro-batch
  void visit(const std::function<void(const char*, const at::Tensor&)>&) const override {}
};

// Adds rows to table rows; equal indices accumulate, in a fixed order on every device.
void add_rows(const at::Tensor& table, const at::Tensor& index, const at::Tensor& rows) {
  if (table.is_cpu()) {
    table.index_add_(0, index, rows);
  } else {
    const_cast<at::Tensor&>(table).index_put_({index}, rows, /*accumulate=*/true);  // sorts, where index_add_ has atomics
  }
}

}  // namespace

Embedding::Embedding(const Context& context, const FlatParameters& parameters)
    : context_(context),
      token_(parameters.parameter("embedding.token.weight")),
      position_(parameters.parameter_if_declared("embedding.position.weight")),
      vocabulary_(token_.held(0)) {}

// Rows of the local table; tokens that other ranks hold become row 0 and are marked in `outside`.
at::Tensor Embedding::local_tokens(const at::Tensor& tokens, at::Tensor* outside) const {
  if (context_.tensor->size() == 1) return tokens;
  *outside = tokens.lt(vocabulary_.begin).logical_or_(tokens.ge(vocabulary_.end)).unsqueeze_(1);
  return tokens.sub(vocabulary_.begin).masked_fill_(outside->squeeze(1), 0);
}

at::Tensor Embedding::positions(const MicroBatch& batch) const {
  return row_positions(batch, context_.local_rows(batch.tokens_total()), context_.device);
}

at::Tensor Embedding::forward(const at::Tensor&, const MicroBatch& batch, Saved* saved) const {
  at::Tensor outside;
  at::Tensor partial = token_.value.index_select(0, local_tokens(batch.tokens, &outside));
  if (outside.defined()) partial.masked_fill_(outside, 0);
  at::Tensor rows =
      redistribute(partial, spec::Placement::partial(), context_.residual, *context_.tensor);
  if (position_.value.defined()) rows.add_(position_.value.index_select(0, positions(batch)));
  if (saved != nullptr) *saved = std::make_unique<EmbeddingSaved>();
  return hidden_dropout(rows, context_, batch, kEmbeddingSite);
}

at::Tensor Embedding::backward(const at::Tensor& output_gradient, const MicroBatch& batch, SavedRecord&,
                               WeightGradientQueue&) const {
  const at::Tensor gradient = hidden_dropout_backward(output_gradient, context_, batch, kEmbeddingSite);
  if (position_.value.defined()) add_rows(position_.gradient, positions(batch), gradient.to(at::kFloat));
  at::Tensor rows = redistribute(gradient, context_.residual, spec::Placement::replicate(), *context_.tensor).to(at::kFloat);
  at::Tensor outside;
  const at::Tensor index = local_tokens(batch.tokens, &outside);
  // Adding zeros to row 0 costs less than selecting rows, which would wait for the device.
  if (outside.defined()) rows = rows.masked_fill(outside, 0);
  add_rows(token_.gradient, index, rows);
  return {};
}

}  // namespace ridgeline::nn
