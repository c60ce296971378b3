// Ring attention: the ranks of a context axis hold parts of the same sequences, and keys and values go round, so that
// each rank attends with its queries to all of them while the next ones are on their way (Liu, Zaharia, Abbeel 2023,
// arXiv 2310.01889). Outputs of blocks are merged in fp32 by their log-sum-exps; in the backward the gradients of keys
// and values, in fp32, follow these round the ring.
//
// Rank i of c holds chunks i and 2c-1-i of 2c, one after the other. With causal attention a rank then has as much to do
// as any other at every step:
//
//   its own keys        both chunks, causal as they stand
//   from a lower rank   all queries see the first chunk, none the second
//   from a higher rank  the second chunk of queries sees both, the first none
//
// What no query sees is not computed; of a sliding window that is chunks out of its reach too.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>

#include "mesh/communicator.h"
#include "nn/attention.h"
#include "spec/placement.h"

namespace ridgeline::nn {

// Rows of queries, of the rank at work, and of keys, of the rank that they came from, that are attended to at once.
struct RingBlock {
  spec::Range queries, keys;
  bool causal = false;
  bool operator==(const RingBlock&) const = default;
};

// What rank `rank` of `ranks` computes with the keys of `owner`, in chunks of `chunk` tokens; nothing where no query
// sees a key. `window` as in AttentionPattern.
std::optional<RingBlock> ring_block(int64_t rank, int64_t owner, int64_t ranks, int64_t chunk, int64_t window);

// As attention_forward and attention_backward, of this rank's part of the sequences. `pattern` is that of the whole
// sequences, its documents too. Collective over `axis`.
AttentionOutput ring_attention_forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                       const AttentionPattern& pattern, const mesh::Communicator& axis);
AttentionGradients ring_attention_backward(const at::Tensor& output_gradient, const at::Tensor& q, const at::Tensor& k,
                                           const at::Tensor& v, const AttentionOutput& forward,
                                           const AttentionPattern& pattern, const mesh::Communicator& axis);

}  // namespace ridgeline::nn
