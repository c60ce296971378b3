// Bytes that a device keeps through a training step, under a strategy and a precision.
//
//   weights      parameters in the compute precision
//   gradients    main gradients in fp32
//   optimizer    two moments in fp32, and a master copy in fp32 where the compute precision is not fp32 (in fp32 the
//                parameters are their own masters)
//   buffers      where the units at work are whole, with ZeRO-2 and 3: their gradients, and with ZeRO-3 their values
//   activations  saved tensors (cost/saved_tensors.h) of as many micro-batches as the schedule has in flight at most,
//                what recomputation rebuilds of the one layer that is in backward, and where the schedule splits the
//                backward the inputs and output gradients of weights whose gradients are put off
//   messages     tensors between stages: a receive posted for each peer, the last ones sent to each, one that is to be
//                sent; and the tokens of the micro-batches in flight
// With strategy.offload_optimizer masters (in fp32 too) and moments lie in host memory.
// ZeRO-1 divides the optimizer state by strategy.shards(), ZeRO-2 the gradients too, ZeRO-3 all three. The context axis
// divides rows: activations and messages.
// Parameters are counted in the flat buffers that the trainer allocates (spec/flat_layout.h), padding included.
//
// Not counted: what lives only inside one action (logits of a chunk, gradients on their way through a layer), and the
// allocator's fragmentation.
#pragma once

#include <cstdint>

#include "spec/model.h"
#include "spec/strategy.h"
#include "spec/train.h"

namespace ridgeline::cost {

struct Memory {
  int64_t weights = 0;
  int64_t gradients = 0;
  int64_t optimizer = 0;
  int64_t activations = 0;
  int64_t buffers = 0;
  int64_t messages = 0;
  int64_t host = 0;  // of the host's memory, and not in the total: an offloaded optimizer's state and staging
  int64_t total() const { return weights + gradients + optimizer + activations + buffers + messages; }
};

// Every device of a stage at the same place on the tensor axis keeps the same. The strategy's `data` must be derived.
Memory device_memory(const spec::ModelSpec& model, const spec::Strategy& strategy, spec::Precision compute,
                     int64_t stage, int64_t tensor_rank);

struct FullestDevice {
  int64_t stage = 0;
  Memory memory;
};

// The device with the largest total. Uneven shards give the larger part to lower ranks, so it is at tensor rank 0.
FullestDevice fullest_device(const spec::ModelSpec& model, const spec::Strategy& strategy, spec::Precision compute);

// Saved tensors of one micro-batch on the units of `stage`.
int64_t micro_batch_activations(const spec::ModelSpec& model, const spec::Strategy& strategy, spec::Precision compute,
                                int64_t stage, int64_t tensor_rank);

// The most that recomputation rebuilds at once: of a layer with Recompute::full, of half a layer (attention or MLP,
// each rebuilt and released on its own) with Recompute::selective, nothing without.
int64_t recomputed_activations(const spec::ModelSpec& model, const spec::Strategy& strategy, spec::Precision compute,
                               int64_t tensor_rank);

// The residual stream of a micro-batch as a rank of the tensor axis holds it: what passes between stages.
int64_t boundary_bytes(const spec::ModelSpec& model, const spec::Strategy& strategy, spec::Precision compute,
                       int64_t tensor_rank);

}  // namespace ridgeline::cost
