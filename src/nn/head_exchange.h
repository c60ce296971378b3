// HeadExchange: for attention, the ranks of a context axis trade parts of the sequence for heads (all_to_all; Jacobs et
// al. 2023, arXiv 2309.14509): each gives up its part of the other ranks' heads and gets the rest of the sequence of
// its own. Rank i of c has the i-th part of the sequence, and the i-th part of the heads.
//
// Where there are fewer key heads than ranks, each is repeated for the ranks whose query heads read it.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "mesh/communicator.h"
#include "nn/attention.h"

namespace ridgeline::nn {

class HeadExchange {
 public:
  // Of `heads` and `key_heads` of this rank's part of the tensor axis.
  HeadExchange(const mesh::Communicator& axis, int64_t heads, int64_t key_heads)
      : axis_(axis), heads_(heads), key_heads_(key_heads) {}

  int64_t heads() const { return heads_ / axis_.size(); }  // of queries that this rank attends with

  // Queries, keys and values of part of the sequence [micro_batch, heads, part, size] -> of all of it, for this rank's
  // heads, as one tensor [micro_batch, sequence, heads + 2 * key heads, size] (parts_of). Collective, as all below.
  at::Tensor to_heads(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) const;
  // The same of queries alone, or of what lies as they do: [micro_batch, heads, sequence, size].
  at::Tensor to_heads(const at::Tensor& query) const;

  struct Parts {
    at::Tensor query, key, value;
  };
  // Of what to_heads returned, as [micro_batch, heads, sequence, size]: views.
  Parts parts_of(const at::Tensor& together) const;

  // The way back, of the output of attention [micro_batch, heads, sequence, size] to all heads of part of the sequence,
  // and of the gradients of parts_of.
  at::Tensor to_sequence(const at::Tensor& output) const;
  AttentionGradients to_sequence(const AttentionGradients& gradients) const;

 private:
  int64_t repeated_key_heads() const { return std::max(key_heads_, axis_.size()); }
  at::Tensor gather_sequence(const std::vector<at::Tensor>& parts) const;
  std::vector<at::Tensor> scatter_sequence(const std::vector<at::Tensor>& parts) const;

  const mesh::Communicator& axis_;
  int64_t heads_;
  int64_t key_heads_;
};

}  // namespace ridgeline::nn
