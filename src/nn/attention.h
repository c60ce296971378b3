// The one seam of attention. Everything above it sees (output, log-sum-exp); what stands below depends on the device,
// and `attention_kernel` says which kernel will run, so that a silent fall to slow attention cannot happen.
//
// q [micro_batch, heads, queries, head_size], k and v [micro_batch, key heads, keys, head_size], any strides with a
// dense last dimension. Key heads divide heads: query head h reads key head h / (heads / key heads). Output is like q;
// log-sum-exp is fp32 [micro_batch, heads, queries], natural logarithm. Causal: query i sees keys 0..i (equal lengths),
// with a window of w only the last w of them, and of its own document alone where documents are told apart.
//
// Attention to many keys may be computed in blocks of them: outputs are merged by their log-sum-exps, and the backward
// of each block takes output and log-sum-exp of all (nn/ring_attention.h). A query that sees no key of a block has a
// finite output there, and a log-sum-exp that weighs nothing.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "spec/model.h"
#include "spec/placement.h"

namespace ridgeline::nn {

// Dropout on attention probabilities, by counters: see nn/kernels/dropout.h.
struct AttentionDropout {
  double probability = 0.0;
  uint64_t key = 0;         // of (seed, step, layer)
  int64_t first_head = 0;   // global number of the first local head
  at::Tensor samples;       // int64 [micro_batch] on the CPU
  // Of a block: places of its queries and keys in samples of `sequence` tokens. Empty: all of them.
  std::vector<spec::Range> query_places = {}, key_places = {};
  int64_t sequence = 0;
};

// Which scores count, and how.
struct AttentionPattern {
  double scale = 1.0;
  int64_t window = 0;  // keys that a query sees, its own the last; 0: all before it
  at::Tensor documents = {};  // int64 [micro_batch, queries], numbers of documents; undefined: one
  AttentionDropout dropout = {};
  // Of a block.
  bool causal = true;      // else queries see keys that come later too
  at::Tensor hidden = {};  // in place of window and documents: keys that are not seen, as hidden_keys returns them

  bool has_mask() const { return window > 0 || documents.defined() || hidden.defined(); }
};

// Of the model, without dropout and documents.
AttentionPattern attention_pattern(const spec::ModelSpec& model);

// Which keys a query does not see beside those that come after it: bool, [queries, keys] or, with documents,
// [micro_batch, 1, queries, keys]. Undefined where the pattern hides none.
at::Tensor hidden_keys(const AttentionPattern& pattern, int64_t queries, int64_t keys, at::Device device);

// What the score of a hidden key is set to: no weight beside one that is seen, and finite where none is.
double hidden_score(at::ScalarType type);

struct AttentionOutput {
  at::Tensor output;
  at::Tensor log_sum_exp;
  at::Tensor philox_seed, philox_offset;  // what some device kernels hand to their own backward; else undefined
};

struct AttentionGradients {
  at::Tensor q, k, v;
};

AttentionOutput attention_forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                  const AttentionPattern& pattern);
AttentionGradients attention_backward(const at::Tensor& output_gradient, const at::Tensor& q, const at::Tensor& k,
                                      const at::Tensor& v, const AttentionOutput& forward,
                                      const AttentionPattern& pattern);

// Key heads as one for each of `count` query heads, and the gradient of that: what kernels need that know no groups.
at::Tensor repeat_heads(const at::Tensor& heads, int64_t count);
at::Tensor sum_repeated_heads(const at::Tensor& gradient, int64_t count);

// Name of the kernel that runs for tensors of this device and type: "flash (cpu)", "flash", "efficient" or "plain".
std::string attention_kernel(at::Device device, at::ScalarType type, const AttentionPattern& pattern);

}  // namespace ridgeline::nn
