#include "nn/expert_branch.h"

#include "nn/kernels/swiglu.h"

namespace ridgeline::nn {
namespace {

struct ExpertsSaved : SavedRecord {
  Routing routing;
  ExpertPlan plan;
  at::Tensor routed;          // [arrived, hidden] rows of the experts here
  at::Tensor routed_weights;  // fp32 [arrived]
  at::Tensor gate, up;        // [arrived, local width]
  at::Tensor activation;      // SwiGLU of them
  Saved shared;
  void visit(const std::function<void(const char*, const at::Tensor&)>& visitor) const override {
    visitor("router probabilities", routing.probabilities);
    if (routing.log_sum.defined()) visitor("router log-sum-exp", routing.log_sum);
    visitor("picked experts", routing.picked);
    visitor("router weights", routing.weights);
    if (routing.counts.defined()) visitor("tokens of experts", routing.counts);
    visitor("order of picks", plan.picks);
    if (plan.regroup.defined()) visitor("order of arrivals", plan.regroup);
    visitor("routed rows", routed);
    visitor("routed weights", routed_weights);
    visitor("experts gate", gate);
    visitor("experts up", up);
    visitor("experts activation", activation);
    if (shared == nullptr) return;
    shared->visit([&](const char* name, const at::Tensor& tensor) {
      visitor(("shared " + std::string(name)).c_str(), tensor);
    });
  }
};

std::vector<Linear> matrices_of(const FlatParameters& parameters, const std::string& name) {
  const Parameter all = parameters.parameter(name);
  std::vector<Linear> list;
  for (int64_t expert = 0; expert < all.value.size(0); ++expert) {
    list.emplace_back(Parameter{all.value[expert], all.gradient[expert]});
  }
  return list;
}

// Calls `function(expert, first row, rows)` for each expert that has rows.
template <typename Function>
void for_experts(const ExpertPlan& plan, Function function) {
  int64_t begin = 0;
  for (size_t expert = 0; expert < plan.rows.size(); ++expert) {
    if (plan.rows[expert] > 0) function(expert, begin, plan.rows[expert]);
    begin += plan.rows[expert];
  }
}

at::Tensor activation_of(const at::Tensor& gate, const at::Tensor& up) {
  at::Tensor activation = at::empty_like(gate);
  swiglu_forward(gate, up, activation);
  return activation;
}

at::Tensor weighted(const at::Tensor& rows, const at::Tensor& weights) {
  return rows.mul(weights.unsqueeze(1).to(rows.scalar_type()));
}

}  // namespace

ExpertBranch::ExpertBranch(const Context& context, const FlatParameters& parameters, const std::string& prefix)
    : context_(context),
      router_(context, parameters, prefix),
      exchange_(context),
      gate_(matrices_of(parameters, prefix + "experts.gate.weight")),
      up_(matrices_of(parameters, prefix + "experts.up.weight")),
      down_(matrices_of(parameters, prefix + "experts.down.weight")) {
  if (context.model.shared_ffn_hidden > 0) shared_.emplace(parameters, prefix + "shared.");
}

spec::Placement ExpertBranch::input_placement() const {
  return context_.strategy.keeps_experts_whole() ? spec::Placement::shard(0) : spec::Placement::replicate();
}

spec::Placement ExpertBranch::output_placement() const {
  return context_.strategy.keeps_experts_whole() ? spec::Placement::shard(0) : spec::Placement::partial();
}

at::Tensor ExpertBranch::product(const Matrices& matrices, const at::Tensor& rows, const ExpertPlan& plan) const {
  at::Tensor output = at::empty({rows.size(0), matrices.front().weight().size(0)}, rows.options());
  for_experts(plan, [&](size_t expert, int64_t begin, int64_t count) {
    at::Tensor part = output.narrow(0, begin, count);
    matrices[expert].product_into(part, rows.narrow(0, begin, count));
  });
  return output;
}

at::Tensor ExpertBranch::input_gradient(const Matrices& matrices, const at::Tensor& gradient,
                                        const ExpertPlan& plan) const {
  at::Tensor input = at::empty({gradient.size(0), matrices.front().weight().size(1)}, gradient.options());
  for_experts(plan, [&](size_t expert, int64_t begin, int64_t count) {
    at::Tensor part = input.narrow(0, begin, count);
    matrices[expert].input_gradient_into(part, gradient.narrow(0, begin, count));
  });
  return input;
}

void ExpertBranch::queue(const Matrices& matrices, const at::Tensor& input, const at::Tensor& gradient,
                         const ExpertPlan& plan, WeightGradientQueue& weights) const {
  for_experts(plan, [&](size_t expert, int64_t begin, int64_t count) {
    weights.add(matrices[expert], input.narrow(0, begin, count), gradient.narrow(0, begin, count));
  });
}

at::Tensor ExpertBranch::forward(const at::Tensor& input, const MicroBatch& batch, Saved* saved) const {
  auto record = std::make_unique<ExpertsSaved>();
  record->routing = router_.forward(input, batch);
  record->plan = exchange_.plan(record->routing);
  const ExpertPlan& plan = record->plan;
  auto rows = exchange_.start_dispatch(plan, exchange_.pick(plan, input));
  auto row_weights = exchange_.start_dispatch(plan, record->routing.weights.view(-1).index_select(0, plan.picks));
  at::Tensor shared;
  if (shared_) shared = shared_->forward(input, batch, saved != nullptr ? &record->shared : nullptr);
  record->routed = rows.wait();
  record->routed_weights = row_weights.wait();
  record->gate = product(gate_, record->routed, plan);
  record->up = product(up_, record->routed, plan);
  record->activation = activation_of(record->gate, record->up);
  auto outputs =
      exchange_.start_return(plan, product(down_, weighted(record->activation, record->routed_weights), plan));
  at::Tensor output = exchange_.sum_picks(plan, outputs.wait(), input.size(0));
  if (shared.defined()) output.add_(shared);
  if (saved != nullptr) *saved = std::move(record);
  return output;
}

BranchGradients ExpertBranch::backward(const at::Tensor& output_gradient, const MicroBatch& batch, SavedRecord& saved,
                                       WeightGradientQueue& weights) const {
  auto& record = static_cast<ExpertsSaved&>(saved);
  const ExpertPlan& plan = record.plan;
  const int64_t rows = output_gradient.size(0);
  auto dispatch = exchange_.start_dispatch(plan, exchange_.pick(plan, output_gradient));
  BranchGradients gradients;
  if (shared_) gradients = shared_->backward(output_gradient, batch, *record.shared, weights);
  const at::Tensor routed_gradient = dispatch.wait();
  const at::Tensor gradient = input_gradient(down_, routed_gradient, plan);
  const at::Tensor weight_sums = gradient.to(at::kFloat).mul(record.activation).sum(1);
  auto weight_gradients = exchange_.start_return(plan, weight_sums);
  queue(down_, weighted(record.activation, record.routed_weights), routed_gradient, plan, weights);
  record.activation.reset();
  const at::Tensor gate = std::move(record.gate), up = std::move(record.up);
  swiglu_backward(weighted(gradient, record.routed_weights), gate, up);  // which makes them their gradients
  at::Tensor routed_input = input_gradient(gate_, gate, plan);
  for_experts(plan, [&](size_t expert, int64_t begin, int64_t count) {
    at::Tensor part = routed_input.narrow(0, begin, count);
    up_[expert].add_input_gradient(part, up.narrow(0, begin, count));
  });
  auto input_gradients = exchange_.start_return(plan, routed_input);
  queue(gate_, record.routed, gate, plan, weights);
  queue(up_, record.routed, up, plan, weights);
  weights.overlap();  // while rows are on their way back
  const at::Tensor of_weights = at::zeros({record.routing.weights.numel()}, weight_sums.options())
                                    .index_copy_(0, plan.picks, weight_gradients.wait());
  const at::Tensor logits = router_.backward(of_weights.view_as(record.routing.weights), record.routing, batch);
  at::Tensor input = exchange_.sum_picks(plan, input_gradients.wait(), rows);
  input.add_(router_.input_gradient(logits));
  if (gradients.input.defined()) input.add_(gradients.input);
  gradients.input = input;
  gradients.first.push_back({&router_.linear(), logits});
  return gradients;
}

void ExpertBranch::drop_recomputable(SavedRecord& saved) const {
  auto& record = static_cast<ExpertsSaved&>(saved);
  record.activation.reset();
  if (shared_) shared_->drop_recomputable(*record.shared);
}

void ExpertBranch::recompute(SavedRecord& saved, const MicroBatch& batch) const {
  auto& record = static_cast<ExpertsSaved&>(saved);
  record.activation = activation_of(record.gate, record.up);
  if (shared_) shared_->recompute(*record.shared, batch);
}

}  // namespace ridgeline::nn
