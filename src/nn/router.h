// Router: which experts each token goes to, and with what weights. All arithmetic is fp32.
//
//   probabilities = softmax(x W^T)
//   picked        = the experts_per_token experts with the largest probability, or with router_bias_rate the largest sum of
//                   probability and bias (Wang et al., arXiv 2408.15664); the bias has no part in weights
//   weights       = their probabilities, with router_normalize divided by their sum
//
// In training an expert takes at most model.expert_capacity() tokens of each sample, those with the lowest positions; what
// it does not take counts with weight 0. Samples lie alike in all layouts, so what is dropped does not depend on them.
//
// Losses, added to the sum of token losses, with n layers, samples of s tokens, E experts:
//
//   auxiliary (Fedus et al., arXiv 2101.03961, of one sample)   coefficient / n * s * E * sum over experts e of f_e P_e
//       f_e: tokens of the sample that picked e, divided by s; P_e: mean probability of e over the sample
//   z (Zoph et al., arXiv 2202.08906, of one token)             coefficient / n * (log sum of exp of logits)^2
//
// so that a step adds coefficients times the mean over samples (tokens) and layers. f counts all picks of a token, as
// Hugging Face's load_balancing_loss_func does: even use gives experts_per_token. Both are sums over samples, and samples
// are never mixed: that makes them, too, the same in all layouts.
//
// Rows are the tokens of whole samples, or where experts are whole a part of them for each rank of the tensor axis, or those
// that a rank of the context axis holds; then counts of the samples are summed over it. Capacity needs samples that no
// context axis cuts (spec/strategy.cpp).
#pragma once

#include <ATen/ATen.h>

#include <string>

#include "nn/context.h"
#include "nn/linear.h"
#include "nn/micro_batch.h"

namespace ridgeline::nn {

struct Routing {
  at::Tensor probabilities;  // fp32 [rows, experts]
  at::Tensor log_sum;        // fp32 [rows]; with a z loss
  at::Tensor picked;         // int64 [rows, experts_per_token]
  at::Tensor weights;        // fp32, like picked; 0 where the expert does not take the token
  at::Tensor counts;         // int64 [samples, experts] tokens that picked; with an auxiliary loss or a capacity
};

class Router {
 public:
  // `prefix`: "layers.N.mlp."
  Router(const Context& context, const FlatParameters& parameters, const std::string& prefix);

  // input [rows, hidden]
  Routing forward(const at::Tensor& input, const MicroBatch& batch) const;

  // Gradient (fp32) of the logits, given that of the weights (fp32), which is zero where the weight is; partial where
  // rows are replicated over the tensor axis. Counts tokens for the bias, and losses.
  at::Tensor backward(const at::Tensor& weight_gradient, const Routing& routing, const MicroBatch& batch) const;

  const Linear& linear() const { return linear_; }
  at::Tensor input_gradient(const at::Tensor& logits_gradient) const;

 private:
  bool cuts_rows() const { return context_.strategy.keeps_experts_whole(); }
  spec::Range rows(const MicroBatch& batch) const;
  at::Tensor samples_of_rows(const MicroBatch& batch) const;
  // Adds to the gradient of probabilities, and to the losses that are reported.
  void add_auxiliary_loss(at::Tensor& gradient, const Routing& routing, const MicroBatch& batch) const;
  void report(const at::Tensor& loss) const;
  at::Tensor counts_of_ranks(const at::Tensor& picks, const MicroBatch& batch) const;
  at::Tensor taken(const Routing& routing, const at::Tensor& picks, const at::Tensor& of_ranks,
                   const MicroBatch& batch) const;

  const Context& context_;
  Linear linear_;
  Parameter balance_;  // undefined tensors without a bias
};

}  // namespace ridgeline::nn
