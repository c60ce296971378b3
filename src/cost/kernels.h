// What a device executes for one micro-batch on one unit of a model: matrix products with their shapes, attention,
// element-wise passes with the bytes that they touch, and the messages on the tensor and the context axis. Pure counts:
// what they take is a machine's affair (simulate/kernel_time.h).
//
// A product [m, k] x [k, n] of the forward takes two in the backward: [m, n] x [n, k] for the input and
// [n, m] x [m, k] for the weight, which also reads and writes fp32 main gradients. Shapes are those of tensor rank 0,
// whose shares are the largest.
//
// Element-wise passes, in elements of e bytes, r rows of the residual stream (divided by the tensor axis under sequence
// parallelism): two norms read and write, two branch ends read twice and write; dropout adds a byte of mask. The MLP's
// activation reads and writes its local width. Backwards read one more. Unfused attention writes and reads its
// [heads, s, s] scores: softmax 2 passes, dropout 2 and its mask; in the backward 3 and 2.
//
// Context axis of c ranks, each with 1/c of the rows. Ring: c - 1 times keys and values go to the next rank, in the
// backward as often again with their gradients in fp32, each beside the attention to what came before. all_to_all:
// queries, keys and values go out (key heads of which there are fewer than ranks are repeated) and the output comes
// back; in the backward their gradients, the other way.
#pragma once

#include <cstdint>
#include <vector>

#include "cost/local_shares.h"
#include "cost/recipe.h"
#include "spec/model.h"
#include "spec/strategy.h"
#include "spec/train.h"

namespace ridgeline::cost {

enum class KernelKind {
  product,             // batch products [m, k] x [k, n]; `bytes` beyond the operands
  attention,           // fused attention forward: `flops`, causal counted in full
  attention_backward,  // the same, backward
  pass                 // element-wise: `bytes`
};

struct Kernel {
  KernelKind kind = KernelKind::pass;
  int64_t batch = 1, m = 0, n = 0, k = 0;
  double flops = 0;
  double bytes = 0;
  const char* part = "";         // of the unit: "embedding", "attention", "mlp" or "head"
  bool in_fp8 = false;           // operands of a byte each
  bool can_be_deferred = false;  // gradient of a weight that a schedule may put off (nn/linear.h)
};

enum class MessageKind { all_reduce, all_gather, reduce_scatter, all_to_all, send, shift };

struct Message {
  MessageKind kind = MessageKind::all_reduce;
  // Of the whole tensor: what an all-gather ends with, a reduce-scatter begins with, one rank gives to the others.
  double bytes = 0;
  bool hidden = false;  // may run beside the product that follows it
};

struct Work {
  std::vector<Kernel> kernels;
  std::vector<Message> messages;  // on the tensor axis
  std::vector<Message> context;   // on the context axis
  std::vector<Message> expert;    // among the ranks that experts lie on
};

struct UnitWork {
  Work forward;
  Work backward;   // without recomputation
  Work recompute;  // what the backward repeats first
};

// `unit` as in spec/parameters.h. `strategy` gives tensor, sequence_parallel, context, micro_batch and recompute;
// `shares` are local_shares(model, strategy.tensor), which a caller of many keeps.
UnitWork unit_kernels(const spec::ModelSpec& model, const spec::Strategy& strategy, const LocalShares& shares,
                      spec::Precision compute, const Recipe& recipe, int64_t unit);

}  // namespace ridgeline::cost
