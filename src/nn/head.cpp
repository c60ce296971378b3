#include "nn/head.h"

#include <algorithm>

#include "nn/kernels/cross_entropy.h"
#include "nn/redistribute.h"

namespace ridgeline::nn {
namespace {

const spec::Placement kReplicate = spec::Placement::replicate();
const spec::Placement kPartial = spec::Placement::partial();

// Rows are worked on in chunks whose logits take about this much: small beside the activations of a stage, large enough
// that the matrix products run at full rate and that adding the weight gradient is a small part of the work.
int64_t logits_bytes(at::Device device) { return int64_t{device.is_cpu() ? 64 : 512} << 20; }
constexpr int64_t kLeastRows = 256;

const char* output_name(const Context& context) {
  return context.model.tied ? "embedding.token.weight" : "head.weight";
}

struct HeadSaved : SavedRecord {
  at::Tensor input;
  NormStatistics statistics;
  at::Tensor normed_gradient;  // in the residual placement
  void visit(const std::function<void(const char*, const at::Tensor&)>& visitor) const override {
    visitor("input", input);
    visitor("norm mean", statistics.mean);
    visitor("norm rstd", statistics.rstd);
    visitor("norm output gradient", normed_gradient);
  }
};

}  // namespace

Head::Head(const Context& context, const FlatParameters& parameters)
    : context_(context),
      norm_(context.model, parameters, "final_norm"),
      output_(parameters.parameter(output_name(context))),
      vocabulary_(parameters.parameter(output_name(context)).held(0)) {}

at::Tensor Head::chunk_losses(const at::Tensor& logits, const at::Tensor& targets, bool backward,
                              double gradient_scale) const {
  const mesh::Communicator& axis = *context_.tensor;
  if (axis.size() == 1 && backward) return loss_and_gradient(logits, targets, gradient_scale);
  const at::Tensor maximum = row_max(logits);
  axis.all_reduce(maximum, mesh::Reduction::max).wait();
  RowSums sums = row_sums(logits, maximum, targets, vocabulary_.begin);
  if (axis.size() > 1) {
    const at::Tensor both = at::stack({sums.sum_exp, sums.target_logit});
    axis.all_reduce(both).wait();
    sums = {both[0], both[1]};
  }
  const at::Tensor losses = token_losses(maximum, sums, targets);
  if (backward) softmax_gradient(logits, maximum, sums.sum_exp, targets, vocabulary_.begin, gradient_scale);
  return losses;
}

at::Tensor Head::forward(const at::Tensor& input, const MicroBatch& batch, Saved* saved) const {
  const bool backward = saved != nullptr;
  NormStatistics statistics;
  const at::Tensor normed = norm_.forward(input, statistics);
  const at::Tensor rows = redistribute(normed, context_.residual, kReplicate, *context_.tensor);
  at::Tensor gradient = backward ? at::empty_like(rows) : at::Tensor();
  at::Tensor loss = at::zeros({1}, rows.options().dtype(at::kDouble));
  const int64_t row_bytes = std::max<int64_t>(1, vocabulary_.size() * rows.element_size());
  const int64_t chunk = std::max(kLeastRows, logits_bytes(context_.device) / row_bytes);
  for (int64_t begin = 0; begin < rows.size(0); begin += chunk) {
    const int64_t count = std::min(chunk, rows.size(0) - begin);
    const at::Tensor part = rows.narrow(0, begin, count);
    const at::Tensor logits = output_.product(part);
    loss.add_(chunk_losses(logits, batch.targets.narrow(0, begin, count), backward, batch.gradient_scale).sum(at::kDouble));
    if (!backward) continue;
    at::Tensor part_gradient = gradient.narrow(0, begin, count);
    output_.input_gradient_into(part_gradient, logits);
    output_.add_weight_gradient(part, logits);
  }
  if (backward) {
    auto record = std::make_unique<HeadSaved>();
    record->input = input;
    record->statistics = std::move(statistics);
    record->normed_gradient = redistribute(gradient, kPartial, context_.residual, *context_.tensor);
    *saved = std::move(record);
  }
  return loss;
}

at::Tensor Head::backward(const at::Tensor&, const MicroBatch&, SavedRecord& saved, WeightGradientQueue&) const {
  auto& record = static_cast<HeadSaved&>(saved);
  return norm_.backward(record.normed_gradient, record.input, record.statistics);
}

at::Tensor Head::logits(const at::Tensor& input) const {
  const at::Tensor rows = redistribute(norm_.forward(input), context_.residual, kReplicate, *context_.tensor);
  // Shards may be uneven, so they are summed as disjoint columns.
  at::Tensor all = at::zeros({rows.size(0), context_.model.vocabulary}, rows.options());
  all.narrow(1, vocabulary_.begin, vocabulary_.size()).copy_(output_.product(rows));
  return redistribute(all, kPartial, kReplicate, *context_.tensor);
}

}  // namespace ridgeline::nn
