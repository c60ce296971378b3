// FLOPs of a model, by unit and by pass.
//
// *Model FLOPs* are the matrix products and attention of one forward and one backward, without recomputation; *hardware
// FLOPs* add what is recomputed. A product of [a, b] and [b, c] counts 2 a b c; causal attention counts in full, as the
// published tables do; norms, GELU, softmax, dropout and the embedding's lookup count nothing. A backward is two
// products of the same size as the forward's one. Recompute::full repeats the whole forward of every layer,
// Recompute::selective only norms and GELU, which count nothing; the head is never repeated, and neither is what
// attention kernels redo inside.
//
// Forward FLOPs of a sample of s tokens, with hidden h, MLP width f, vocabulary V:
//   layer   qkv 6 s h^2, scores 2 s^2 h, context 2 s^2 h, output 2 s h^2, MLP 4 s h f     head   logits 2 s h V
// With heads of q channels together and key heads of k: qkv 2 s h (q + 2 k), scores and context 2 s^2 q, output 2 s h
// q. A gated MLP takes 6 s h f; of E experts of width e a token takes n and the shared ones of width d, with a router:
// 2 s h E + 6 s h (n e + d). Rotary positions count nothing. Where experts are cut over the tensor axis, each of its ranks
// repeats the router; a model's FLOPs count it once, a device's as it is.
// The ranks of a context axis share all of it evenly: a ring leaves out the blocks that no query sees, and as causal
// attention counts in full, each block that is seen whole counts twice.
// With f = 4 h a step with full recomputation is 96 B s L h^2 (1 + s / 6h + V / 16 L h): Narayanan et al. 2021
// (arXiv 2104.04473, appendix), which Dash et al. 2023 use too. Without recomputation ours is
// 72 B s L h^2 (1 + s / 6h + V / 12 L h), where Dash et al. keep V / 16 L h: that counts 4.5 B s h V for the logits,
// which take 6 B s h V.
//
// Counts are double: a step of a large model passes 2^63, and below 2^53 they are exact.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "spec/model.h"
#include "spec/strategy.h"

namespace ridgeline::cost {

// One matrix product of a unit's forward.
struct Product {
  std::string name;
  double forward_flops;    // of one sample, over the whole tensor axis
  int64_t divided;         // what the tensor axis divides: heads, MLP width or vocabulary; 0: nothing
  bool has_weight = true;  // else a product of two activations
  bool is_routed = false;  // of the rows that a router sees: where experts are whole the tensor axis divides these
};

std::vector<Product> unit_products(const spec::ModelSpec& model, int64_t unit);

struct PassFlops {
  double forward = 0.0;
  double backward = 0.0;
  double recompute = 0.0;
  double model_flops() const { return forward + backward; }
  double hardware_flops() const { return forward + backward + recompute; }
  PassFlops& operator+=(const PassFlops& other);
};

// One sample through one unit, over the whole tensor axis.
PassFlops unit_flops(const spec::ModelSpec& model, spec::Recompute recompute, int64_t unit);

// One micro-batch on one device: the units of `stage`, the shares of `tensor_rank` and of a rank of the context axis.
// All backward work is counted as backward, also that of the logits, which the head does in its forward.
PassFlops device_flops(const spec::ModelSpec& model, const spec::Strategy& strategy, int64_t stage,
                       int64_t tensor_rank);

// The part of unit_flops' backward that computes gradients of weights and may be put off (nn/linear.h). The head's are
// computed with its logits.
double unit_deferrable_flops(const spec::ModelSpec& model, int64_t unit);

// One sample through the whole model.
PassFlops sample_flops(const spec::ModelSpec& model, spec::Recompute recompute);

// One optimizer step over all devices.
double step_model_flops(const spec::ModelSpec& model, const spec::Strategy& strategy);
double step_hardware_flops(const spec::ModelSpec& model, const spec::Strategy& strategy);

}  // namespace ridgeline::cost
