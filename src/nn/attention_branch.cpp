#include "nn/attention_branch.h"

#include <utility>

#include "core/random.h"
#include "nn/dropout_sites.h"
#include "nn/ring_attention.h"

namespace ridgeline::nn {
namespace {

struct AttentionSaved : SavedRecord {
  Qkv qkv;
  at::Tensor exchanged;  // query, key and value of this rank's heads, in place of those in `qkv`
  AttentionOutput attention;
  at::Tensor rows;  // where heads were exchanged: the output of all heads
  void visit(const std::function<void(const char*, const at::Tensor&)>& visitor) const override {
    qkv.visit(visitor);
    visitor("exchanged qkv", exchanged);
    visitor("attention output", attention.output);
    visitor("log-sum-exp", attention.log_sum_exp);
    visitor("attention rows", rows);
  }
};

// [samples, heads, tokens, size] as rows of all heads.
at::Tensor as_rows(const at::Tensor& heads) {
  return heads.transpose(1, 2).reshape({heads.size(0) * heads.size(2), heads.size(1) * heads.size(3)});
}

}  // namespace

AttentionBranch::AttentionBranch(const Context& context, const FlatParameters& parameters, const std::string& prefix,
                                 int64_t layer, const Rotary* rotary)
    : context_(context),
      layer_(layer),
      qkv_(context, parameters, prefix, rotary),
      output_(parameters.parameter(prefix + "output.weight")) {
  if (context.context_axis == nullptr || context.strategy.context_kind == spec::ContextKind::ring) return;
  exchange_.emplace(*context.context_axis, qkv_.heads().size(), qkv_.key_heads());
}

AttentionPattern AttentionBranch::pattern(const MicroBatch& batch) const {
  AttentionPattern pattern = attention_pattern(context_.model);
  pattern.documents = batch.documents;
  if (batch.training && context_.model.attention_dropout > 0) {
    pattern.dropout = {context_.model.attention_dropout,
                       dropout_key(context_.seed, batch.step, attention_probabilities_site(layer_)),
                       qkv_.heads().begin, batch.samples};
    if (exchange_) pattern.dropout.first_head += context_.context_axis->rank() * exchange_->heads();
  }
  return pattern;
}

// Of all rows, which every rank of the tensor axis has; undefined where the embedding has added them.
at::Tensor AttentionBranch::positions(const MicroBatch& batch) const {
  if (context_.model.positions != spec::Positions::rotary) return {};
  return row_positions(batch, {0, batch.tokens_total()}, context_.device);
}

at::Tensor AttentionBranch::forward(const at::Tensor& input, const MicroBatch& batch, Saved* saved) const {
  Qkv qkv = qkv_.forward(input, positions(batch));
  if (exchange_) return output_.forward(forward_exchanged(std::move(qkv), batch, saved));
  const at::Tensor query = qkv_.as_heads(qkv.query, batch.size), key = qkv_.as_heads(qkv.key, batch.size);
  const at::Tensor value = qkv_.as_heads(qkv.value, batch.size);
  AttentionOutput attention = on_ring()
                                  ? ring_attention_forward(query, key, value, pattern(batch), *context_.context_axis)
                                  : attention_forward(query, key, value, pattern(batch));
  const at::Tensor output = output_.forward(as_rows(attention.output));
  if (saved != nullptr) {
    auto record = std::make_unique<AttentionSaved>();
    record->qkv = std::move(qkv);
    record->attention = std::move(attention);
    *saved = std::move(record);
  }
  return output;
}

// Returns the output of all heads as rows.
at::Tensor AttentionBranch::forward_exchanged(Qkv qkv, const MicroBatch& batch, Saved* saved) const {
  at::Tensor exchanged = exchange_->to_heads(qkv_.as_heads(qkv.query, batch.size), qkv_.as_heads(qkv.key, batch.size),
                                             qkv_.as_heads(qkv.value, batch.size));
  const HeadExchange::Parts parts = exchange_->parts_of(exchanged);
  AttentionOutput attention = attention_forward(parts.query, parts.key, parts.value, pattern(batch));
  const at::Tensor rows = as_rows(exchange_->to_sequence(attention.output));
  if (saved != nullptr) {
    auto record = std::make_unique<AttentionSaved>();
    for (at::Tensor* part : {&qkv.together, &qkv.query, &qkv.key, &qkv.value}) part->reset();
    record->qkv = std::move(qkv);
    record->exchanged = std::move(exchanged);
    record->attention = std::move(attention);
    record->rows = rows;
    *saved = std::move(record);
  }
  return rows;
}

AttentionGradients AttentionBranch::backward_exchanged(const at::Tensor& rows_gradient, const MicroBatch& batch,
                                                       SavedRecord& saved) const {
  auto& record = static_cast<AttentionSaved&>(saved);
  const at::Tensor gradient = exchange_->to_heads(qkv_.as_heads(rows_gradient, batch.size));
  const HeadExchange::Parts parts = exchange_->parts_of(record.exchanged);
  const AttentionGradients gradients =
      attention_backward(gradient, parts.query, parts.key, parts.value, record.attention, pattern(batch));
  record.attention = {};
  record.exchanged.reset();
  return exchange_->to_sequence(gradients);
}

void AttentionBranch::drop_recomputable(SavedRecord& saved) const {
  if (exchange_) return;
  qkv_.drop_recomputable(static_cast<AttentionSaved&>(saved).qkv);
}

void AttentionBranch::recompute(SavedRecord& saved, const MicroBatch& batch) const {
  if (exchange_) return;
  qkv_.recompute(static_cast<AttentionSaved&>(saved).qkv, positions(batch));
}

BranchGradients AttentionBranch::backward(const at::Tensor& output_gradient, const MicroBatch& batch, SavedRecord& saved,
                                          WeightGradientQueue& weights) const {
  auto& record = static_cast<AttentionSaved&>(saved);
  const at::Tensor rows_gradient = output_.input_gradient(output_gradient);
  weights.add(output_, exchange_ ? std::exchange(record.rows, {}) : as_rows(record.attention.output), output_gradient);
  if (exchange_) return qkv_.backward(backward_exchanged(rows_gradient, batch, saved), positions(batch), record.qkv);
  const at::Tensor gradient = qkv_.as_heads(rows_gradient, batch.size);
  const at::Tensor query = qkv_.as_heads(record.qkv.query, batch.size), key = qkv_.as_heads(record.qkv.key, batch.size);
  const at::Tensor value = qkv_.as_heads(record.qkv.value, batch.size);
  const AttentionGradients gradients =
      on_ring() ? ring_attention_backward(gradient, query, key, value, record.attention, pattern(batch),
                                          *context_.context_axis)
                : attention_backward(gradient, query, key, value, record.attention, pattern(batch));
  record.attention = {};
  return qkv_.backward(gradients, positions(batch), record.qkv);
}

}  // namespace ridgeline::nn
