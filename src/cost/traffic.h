// Bytes that one rank puts through each group in a training step, operation by operation, counted as mesh/observer.h
// counts them: the tensor reduced or sent, an all-gather's output, a reduce-scatter's input.
//
//   tensor    what units move in each pass (cost/kernels.h), and gradients that are partial on the axis
//   pipeline  activations and gradients between stages, by the schedule's own lists
//   tied      gradients of the embedding that two stages share
//   context   keys, values and their gradients on a ring; with all_to_all heads for parts of the sequence, and back
//   expert    rows that routers send to experts and back, with even routing; counts of each rank's exactly where a token
//             goes to all experts
//   data      gradient buckets, reduced or scattered (and then reduced over copies of the shards), and the parameters
//             gathered after the update, or with ZeRO-3 before they are used (cost/shard_traffic.h)
#pragma once

#include <cstdint>

#include "spec/model.h"
#include "spec/strategy.h"
#include "spec/train.h"

namespace ridgeline::cost {

struct Traffic {
  int64_t all_reduce = 0;
  int64_t all_gather = 0;
  int64_t reduce_scatter = 0;
  int64_t send = 0;
  int64_t receive = 0;
  int64_t all_to_all = 0;
  int64_t shift = 0;
  bool operator==(const Traffic&) const = default;
};

struct StepTraffic {
  Traffic tensor, context, expert, pipeline, tied, data;
};

// `strategy.data` must be derived.
StepTraffic step_traffic(const spec::ModelSpec& model, const spec::Strategy& strategy, spec::Precision compute,
                         int64_t stage, int64_t tensor_rank);

}  // namespace ridgeline::cost
