#include "nn/attention_branch.h"

#include <cmath>

#include "core/random.h"
#include "nn/dropout_sites.h"

namespace ridgeline::nn {
namespace {

struct AttentionSaved : SavedRecord {
  Qkv qkv;
  AttentionOutput attention;
  void visit(const std::function<void(const char*, const at::Tensor&)>& visitor) const override {
    qkv.visit(visitor);
    visitor("attention output", attention.output);
    visitor("log-sum-exp", attention.log_sum_exp);
  }
};

}  // namespace

AttentionBranch::AttentionBranch(const Context& context, const FlatParameters& parameters, const std::string& prefix,
                                 int64_t layer, const Rotary* rotary)
    : context_(context),
      layer_(layer),
      qkv_(context, parameters, prefix, rotary),
      output_(parameters.parameter(prefix + "output.weight")) {}

AttentionPattern AttentionBranch::pattern(const MicroBatch& batch) const {
  AttentionPattern pattern = attention_pattern(context_.model);
  pattern.documents = document_numbers(batch);
  if (batch.training && context_.model.attention_dropout > 0) {
    pattern.dropout = {context_.model.attention_dropout,
                       dropout_key(context_.seed, batch.step, attention_probabilities_site(layer_)),
                       qkv_.heads().begin, batch.samples};
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
  AttentionOutput attention =
      attention_forward(qkv_.as_heads(qkv.query, batch.size), qkv_.as_heads(qkv.key, batch.size),
                        qkv_.as_heads(qkv.value, batch.size), pattern(batch));
  const at::Tensor rows = attention.output.transpose(1, 2).reshape({input.size(0), -1});
  const at::Tensor output = output_.forward(rows);
  if (saved != nullptr) {
    auto record = std::make_unique<AttentionSaved>();
    record->qkv = std::move(qkv);
    record->attention = std::move(attention);
    *saved = std::move(record);
  }
  return output;
}

void AttentionBranch::drop_recomputable(SavedRecord& saved) const {
  qkv_.drop_recomputable(static_cast<AttentionSaved&>(saved).qkv);
}

void AttentionBranch::recompute(SavedRecord& saved, const MicroBatch& batch) const {
  qkv_.recompute(static_cast<AttentionSaved&>(saved).qkv, positions(batch));
}

BranchGradients AttentionBranch::backward(const at::Tensor& output_gradient, const MicroBatch& batch, SavedRecord& saved,
                                          WeightGradientQueue& weights) const {
  auto& record = static_cast<AttentionSaved&>(saved);
  const int64_t rows = output_gradient.size(0);
  const at::Tensor rows_gradient = output_.input_gradient(output_gradient);
  weights.add(output_, record.attention.output.transpose(1, 2).reshape({rows, -1}), output_gradient);
  const AttentionGradients gradients = attention_backward(
      qkv_.as_heads(rows_gradient, batch.size), qkv_.as_heads(record.qkv.query, batch.size),
      qkv_.as_heads(record.qkv.key, batch.size), qkv_.as_heads(record.qkv.value, batch.size), record.attention,
      pattern(batch));
  record.attention = {};
  return qkv_.backward(gradients, positions(batch), record.qkv);
}

}  // namespace ridgeline::nn
