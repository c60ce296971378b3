// QkvProjection: queries, keys and values of rows, ready for attention: the projections, then each head's norm and
// rotation where the model has them.
//
// Query, key and value are one product where they are alike (spec::ModelSpec::fused_qkv), else three. On the tensor axis
// they are column parallel: a rank holds whole heads, of key and value the group that its query heads share.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <string>

#include "nn/attention.h"
#include "nn/branch.h"
#include "nn/context.h"
#include "nn/rotary.h"

namespace ridgeline::nn {

// What the projection gives and its backward needs: query, key and value [rows, local heads * head size].
struct Qkv {
  at::Tensor together;  // of a fused product, [rows, 3 * width]; the three are views of it
  at::Tensor query, key, value;
  // With QK norm: its inputs, and its statistics [rows * local heads].
  at::Tensor query_before_norm, query_rstd, key_before_norm, key_rstd;

  void visit(const std::function<void(const char*, const at::Tensor&)>& visitor) const;
};

class QkvProjection {
 public:
  // `prefix`: "layers.N.attention."; `rotary` is null where positions are learned.
  QkvProjection(const Context& context, const FlatParameters& parameters, const std::string& prefix,
                const Rotary* rotary);

  spec::Range heads() const { return heads_; }          // of queries that this rank holds, of all
  int64_t key_heads() const { return key_heads_; }      // of keys and values that it holds

  // positions: int64 [rows], used by rotary models alone.
  Qkv forward(const at::Tensor& input, const at::Tensor& positions) const;

  // Releases the outputs of heads' norms where they have memory of their own (not of a fused product), and rebuilds them.
  void drop_recomputable(Qkv& qkv) const;
  void recompute(Qkv& qkv, const at::Tensor& positions) const;

  // [rows, heads * head size] as [samples, heads, rows / samples, head size], a view.
  at::Tensor as_heads(const at::Tensor& rows, int64_t samples) const;

  // From the gradients of the three as heads. Releases what `qkv` holds, whose tensors may be overwritten.
  BranchGradients backward(const AttentionGradients& gradients, const at::Tensor& positions, Qkv& qkv) const;

 private:
  void norm_and_rotate(at::Tensor& part, const Parameter& norm, const at::Tensor& positions, at::Tensor& before,
                       at::Tensor& rstd) const;
  at::Tensor norm_again(const Parameter& norm, const at::Tensor& positions, const at::Tensor& before,
                        const at::Tensor& rstd) const;
  at::Tensor undo(const at::Tensor& gradient, const Parameter& norm, const at::Tensor& positions,
                  const at::Tensor& before, const at::Tensor& rstd) const;
  at::Tensor by_head(const at::Tensor& rows) const;

  int64_t head_size_;
  double epsilon_;
  const Rotary* rotary_;
  Linear query_;  // of all three where they are fused
  Linear key_, value_;
  Parameter query_norm_, key_norm_;  // undefined without QK norm
  bool fused_;
  spec::Range heads_;
  int64_t key_heads_;
};

}  // namespace ridgeline::nn
