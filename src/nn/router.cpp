#include "nn/router.h"

namespace ridgeline::nn {

Router::Router(const Context& context, const FlatParameters& parameters, const std::string& prefix)
    : context_(context),
      linear_(parameters.parameter(prefix + "router.weight")),
      balance_(parameters.parameter_if_declared(prefix + "router.balance")) {}

// Of the micro-batch's tokens, those that this rank routes.
spec::Range Router::rows(const MicroBatch& batch) const {
  const int64_t all = batch.tokens_total();
  if (!cuts_rows()) return {0, all};
  return spec::split_range(all, context_.tensor->size(), context_.tensor->rank());
}

at::Tensor Router::samples_of_rows(const MicroBatch& batch) const {
  const spec::Range range = rows(batch);
  const auto options = at::TensorOptions().dtype(at::kLong).device(context_.device);
  return at::arange(range.begin, range.end, options).floor_divide_(batch.sequence);
}

// `picks`: int64 [rows, experts], 1 where picked. [ranks that the rows are cut over, samples, experts]
at::Tensor Router::counts_of_ranks(const at::Tensor& picks, const MicroBatch& batch) const {
  const at::Tensor own = at::zeros({1, batch.size, picks.size(1)}, picks.options());
  own[0].index_add_(0, samples_of_rows(batch), picks);
  if (!cuts_rows()) return own;
  const at::Tensor all = at::empty({context_.tensor->size(), batch.size, picks.size(1)}, picks.options());
  context_.tensor->all_gather(all, own).wait();
  return all;
}

// Which picks lie within their expert's capacity: bool, like picked.
at::Tensor Router::taken(const Routing& routing, const at::Tensor& picks, const at::Tensor& of_ranks,
                         const MicroBatch& batch) const {
  const at::Tensor samples = samples_of_rows(batch);
  const spec::Range range = rows(batch);
  // Picks before each row, counted over all rows here; less those before the row's sample, plus those of lower ranks.
  const at::Tensor before = picks.cumsum(0).sub_(picks);
  const at::Tensor first = samples.mul(batch.sequence).sub_(range.begin).clamp_min_(0);
  const at::Tensor lower = of_ranks.narrow(0, 0, cuts_rows() ? context_.tensor->rank() : 0).sum(0);
  const at::Tensor place = before.sub(before.index_select(0, first)).add_(lower.index_select(0, samples));
  return place.gather(1, routing.picked).lt(context_.model.expert_capacity());
}

Routing Router::forward(const at::Tensor& input, const MicroBatch& batch) const {
  const spec::ModelSpec& model = context_.model;
  const at::Tensor logits = at::linear(input.to(at::kFloat), linear_.weight().to(at::kFloat));
  Routing routing;
  routing.probabilities = at::softmax(logits, 1);
  if (model.router_z_loss > 0) routing.log_sum = at::logsumexp(logits, 1);
  const at::Tensor scores =
      balance_.value.defined() ? routing.probabilities.add(balance_.value.to(at::kFloat)) : routing.probabilities;
  routing.picked = std::get<1>(at::topk(scores, model.experts_per_token, 1));
  routing.weights = routing.probabilities.gather(1, routing.picked);
  if (model.router_normalize) routing.weights.div_(routing.weights.sum(1, /*keepdim=*/true));
  const bool has_capacity = batch.training && model.expert_capacity() > 0;
  if (!batch.training || !(has_capacity || model.router_auxiliary_loss > 0)) return routing;
  const at::Tensor picks = at::zeros(logits.sizes(), routing.picked.options()).scatter_(1, routing.picked, 1);
  const at::Tensor of_ranks = counts_of_ranks(picks, batch);
  routing.counts = of_ranks.sum(0);
  if (context_.context_axis != nullptr) context_.context_axis->all_reduce(routing.counts).wait();
  if (has_capacity) routing.weights.mul_(taken(routing, picks, of_ranks, batch));
  return routing;
}

// Rows that all ranks of the tensor axis have are reported by each of them.
void Router::report(const at::Tensor& loss) const {
  if (!context_.auxiliary_loss.defined()) return;
  const double copies = cuts_rows() ? 1.0 : static_cast<double>(context_.tensor->size());
  context_.auxiliary_loss.add_(loss.to(at::kDouble), 1.0 / copies);
}

void Router::add_auxiliary_loss(at::Tensor& gradient, const Routing& routing, const MicroBatch& batch) const {
  const spec::ModelSpec& model = context_.model;
  const double layers = static_cast<double>(model.layers), sequence = static_cast<double>(model.sequence);
  const double factor = model.router_auxiliary_loss / layers * static_cast<double>(model.experts) / sequence;
  // Of one token's probability: s E f_e / s, with f_e = counts / s.
  const at::Tensor slope = routing.counts.to(at::kFloat).mul_(factor).index_select(0, samples_of_rows(batch));
  report(at::mul(slope, routing.probabilities).sum(at::kDouble));
  // Where all ranks have all rows, and so partial gradients, it is for one of them to add.
  if (cuts_rows() || context_.tensor->rank() == 0) gradient.add_(slope, batch.gradient_scale);
}

at::Tensor Router::backward(const at::Tensor& weight_gradient, const Routing& routing, const MicroBatch& batch) const {
  const spec::ModelSpec& model = context_.model;
  const at::Tensor& all = routing.probabilities;
  at::Tensor of_picked = weight_gradient;
  if (model.router_normalize) {
    const at::Tensor picked = all.gather(1, routing.picked), sum = picked.sum(1, true);
    // Of w_i = p_i / sum: weights without what capacity has taken off.
    of_picked = weight_gradient.sub(weight_gradient.mul(picked).sum(1, true).div_(sum)).div_(sum);
  }
  at::Tensor gradient = at::zeros_like(all).scatter_(1, routing.picked, of_picked);
  if (model.router_auxiliary_loss > 0) add_auxiliary_loss(gradient, routing, batch);
  gradient = all.mul(gradient.sub_(gradient.mul(all).sum(1, true)));  // of the logits
  if (model.router_z_loss > 0) {
    const double factor = model.router_z_loss / static_cast<double>(model.layers);
    report(routing.log_sum.square().sum(at::kDouble).mul_(factor));
    if (cuts_rows() || context_.tensor->rank() == 0) {
      gradient.add_(all.mul(routing.log_sum.unsqueeze(1)), 2.0 * factor * batch.gradient_scale);
    }
  }
  if (balance_.value.defined()) {
    const at::Tensor ones = at::ones({routing.picked.numel()}, balance_.gradient.options());
    balance_.gradient.index_add_(0, routing.picked.view(-1), ones);
  }
  return gradient;
}

at::Tensor Router::input_gradient(const at::Tensor& logits_gradient) const {
  return at::mm(logits_gradient, linear_.weight().to(at::kFloat));
}

}  // namespace ridgeline::nn
