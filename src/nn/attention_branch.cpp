#include "nn/attention_branch.h"

#include <cmath>

#include "core/random.h"
#include "nn/dropout_sites.h"

namespace ridgeline::nn {
namespace {

struct AttentionSaved : SavedRecord {
  at::Tensor qkv;  // [rows, 3 * local hidden]
  AttentionOutput attention;
  void visit(const std::function<void(const char*, const at::Tensor&)>& visitor) const override {
    visitor("qkv", qkv);
    visitor("attention output", attention.output);
    visitor("log-sum-exp", attention.log_sum_exp);
  }
};

// Rows of a projection as heads: the placement of the projection keeps heads whole.
spec::Range heads_in(const spec::Range& rows, int64_t head_size) { return {rows.begin / head_size, rows.end / head_size}; }

// Query, key or value (which = 0, 1, 2) of [rows, 3 * heads * size] as [micro_batch, heads, sequence, size], a view.
at::Tensor heads_of(const at::Tensor& qkv, int64_t which, const MicroBatch& batch, int64_t heads) {
  return qkv.view({batch.size, batch.sequence, 3, heads, -1}).select(2, which).transpose(1, 2);
}

}  // namespace

AttentionBranch::AttentionBranch(const Context& context, const FlatParameters& parameters, const std::string& prefix,
                                 int64_t layer)
    : context_(context),
      layer_(layer),
      heads_(heads_in(parameters.parameter(prefix + "qkv.weight").held(1), context.model.head_size())),
      scale_(1.0 / std::sqrt(static_cast<double>(context.model.head_size()))),
      qkv_(parameters.parameter(prefix + "qkv.weight"), parameters.parameter(prefix + "qkv.bias")),
      output_(parameters.parameter(prefix + "output.weight")) {}

AttentionDropout AttentionBranch::dropout(const MicroBatch& batch) const {
  if (!batch.training || context_.model.attention_dropout <= 0) return {};
  return {context_.model.attention_dropout,
          dropout_key(context_.seed, batch.step, attention_probabilities_site(layer_)),
          heads_.begin, batch.samples};
}

at::Tensor AttentionBranch::forward(const at::Tensor& input, const MicroBatch& batch, Saved* saved) const {
  const at::Tensor qkv = qkv_.forward(input);
  AttentionOutput attention =
      attention_forward(heads_of(qkv, 0, batch, heads_.size()), heads_of(qkv, 1, batch, heads_.size()),
                        heads_of(qkv, 2, batch, heads_.size()), scale_, dropout(batch));
  const at::Tensor rows = attention.output.transpose(1, 2).reshape({input.size(0), -1});
  const at::Tensor output = output_.forward(rows);
  if (saved != nullptr) {
    auto record = std::make_unique<AttentionSaved>();
    record->qkv = qkv;
    record->attention = std::move(attention);
    *saved = std::move(record);
  }
  return output;
}

BranchGradients AttentionBranch::backward(const at::Tensor& output_gradient, const MicroBatch& batch, SavedRecord& saved,
                                          WeightGradientQueue& weights) const {
  auto& record = static_cast<AttentionSaved&>(saved);
  const at::Tensor& output = record.attention.output;
  const at::Tensor rows_gradient = output_.input_gradient(output_gradient);
  weights.add(output_, output.transpose(1, 2).reshape({output_gradient.size(0), -1}), output_gradient);
  const at::Tensor heads_gradient =
      rows_gradient.view({batch.size, batch.sequence, heads_.size(), -1}).transpose(1, 2);
  const AttentionGradients gradients = attention_backward(
      heads_gradient, heads_of(record.qkv, 0, batch, heads_.size()), heads_of(record.qkv, 1, batch, heads_.size()),
      heads_of(record.qkv, 2, batch, heads_.size()), record.attention, scale_, dropout(batch));
  at::Tensor qkv_gradient = at::empty_like(record.qkv);
  heads_of(qkv_gradient, 0, batch, heads_.size()).copy_(gradients.q);
  heads_of(qkv_gradient, 1, batch, heads_.size()).copy_(gradients.k);
  heads_of(qkv_gradient, 2, batch, heads_.size()).copy_(gradients.v);
  record.qkv.reset();
  record.attention = {};
  return {qkv_.input_gradient(qkv_gradient), qkv_gradient};
}

}  // namespace ridgeline::nn
