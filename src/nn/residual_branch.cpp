#include "nn/residual_branch.h"

#include "nn/hidden_dropout.h"
#include "nn/kernels/accumulate.h"
#include "nn/redistribute.h"

namespace ridgeline::nn {
namespace {

spec::Placement of_gradient(const spec::Placement& placement) {
  if (placement.is_shard()) return placement;
  return placement.is_partial() ? spec::Placement::replicate() : spec::Placement::partial();
}

struct ResidualSaved : SavedRecord {
  at::Tensor input;
  NormStatistics statistics;
  at::Tensor normed;  // in the residual placement; released by Recompute::selective
  Saved branch;
  void visit(const std::function<void(const char*, const at::Tensor&)>& visitor) const override {
    visitor("input", input);
    visitor("norm mean", statistics.mean);
    visitor("norm rstd", statistics.rstd);
    visitor("norm output", normed);
    branch->visit(visitor);
  }
};

}  // namespace

ResidualBranch::ResidualBranch(const Context& context, const FlatParameters& parameters, std::unique_ptr<Branch> branch,
                               const std::string& norm, const std::string& output_bias, int64_t site)
    : context_(context),
      branch_(std::move(branch)),
      norm_(context.model, parameters, norm),
      output_bias_(parameters.parameter_if_declared(output_bias)),
      site_(site) {}

at::Tensor ResidualBranch::forward(const at::Tensor& input, const MicroBatch& batch, Saved* saved) const {
  NormStatistics statistics;
  at::Tensor normed = norm_.forward(input, statistics);
  Saved branch_saved;
  const at::Tensor branch_output =
      branch_->forward(redistribute(normed, context_.residual, branch_->input_placement(), *context_.tensor), batch,
                       saved != nullptr ? &branch_saved : nullptr);
  const at::Tensor output =
      redistribute(branch_output, branch_->output_placement(), context_.residual, *context_.tensor);
  const at::Tensor sum = add_bias_dropout_residual(output, output_bias_.value, input, context_, batch, site_);
  if (saved != nullptr) {
    auto record = std::make_unique<ResidualSaved>();
    record->input = input;
    record->statistics = std::move(statistics);
    record->branch = std::move(branch_saved);
    if (context_.strategy.recompute == spec::Recompute::selective) {
      branch_->drop_recomputable(*record->branch);
    } else {
      record->normed = std::move(normed);
    }
    *saved = std::move(record);
  }
  return sum;
}

at::Tensor ResidualBranch::backward(const at::Tensor& output_gradient, const MicroBatch& batch, SavedRecord& saved,
                                    WeightGradientQueue& weights) const {
  auto& record = static_cast<ResidualSaved&>(saved);
  const at::Tensor gradient = hidden_dropout_backward(output_gradient, context_, batch, site_);
  const spec::Placement input_placement = branch_->input_placement();
  Redistribution gathering =
      start_redistribute(gradient, context_.residual, of_gradient(branch_->output_placement()), *context_.tensor);
  if (output_bias_.value.defined()) bias_gradient(output_bias_.gradient, gradient);
  if (!record.normed.defined()) {
    record.normed = norm_.recompute(record.input, record.statistics);
    branch_->recompute(*record.branch, batch);
  }
  Redistribution input = start_redistribute(record.normed, context_.residual, input_placement, *context_.tensor);
  BranchGradients gradients = branch_->backward(gathering.wait(), batch, *record.branch, weights);
  Redistribution scattering =
      start_redistribute(gradients.input, of_gradient(input_placement), context_.residual, *context_.tensor);
  const at::Tensor branch_input = input.wait();
  for (const OutputGradient& first : gradients.first) weights.add(*first.layer, branch_input, first.gradient);
  weights.overlap();  // while the input gradient is being reduced
  return norm_.backward(scattering.wait(), record.input, record.statistics, /*residual_gradient=*/output_gradient);
}

}  // namespace ridgeline::nn
