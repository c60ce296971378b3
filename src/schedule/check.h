// Proof that a schedule may be executed: whoever makes a schedule (or reads one) calls check before a rank is started.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/actions.h"

namespace ridgeline::schedule {

// Throws InternalError that names stage, action and rule unless
//   well formed  sizes agree, every action names a known micro-batch and chunk, global stages are each held once;
//   complete     each stage runs each micro-batch once forward and once backward on each chunk (forward alone where
//                has_backward is false), with every message to and from a neighbour on another stage;
//   ordered      receive, compute, send; forward before backward; input before weight; and the order of the model
//                between chunks that lie on one stage;
//   matched      the messages from one stage to another are received in the order in which they are sent;
//   live         it ends when replayed, both with links of unlimited capacity and with links that hold as many messages
//                as it says (link_capacity).
// Linear in the number of actions: 0.7 s for the 764,000 of 1F1B on 128 stages with 1,000 micro-batches.
void check(const Schedule& schedule);

// The rules that hold within each stage alone: well formed, complete and ordered.
void check_stages(const Schedule& schedule);

// The least power of two that does as link_capacity of a schedule that ends with unlimited links.
int64_t least_link_capacity(const Schedule& schedule);

// The most (micro-batch, chunk) pairs whose forward ran and whose backward for the weights did not, at any time on
// `stage`: what the stage keeps something for. Zero without backward.
int64_t peak_in_flight(const Schedule& schedule, int64_t stage);

// What a stage keeps for one micro-batch on one of its chunks, in any unit.
struct Kept {
  int64_t activations = 0;  // from forward to the end of backward or backward_input
  int64_t deferred = 0;     // from backward_input to backward_weight
};
// What `stage` keeps after each of its actions, in their order. Empty without backward.
std::vector<int64_t> kept_after(const Schedule& schedule, int64_t stage, const std::vector<Kept>& of_chunk);
// The most of it at any time. Zero without backward.
int64_t peak_kept(const Schedule& schedule, int64_t stage, const std::vector<Kept>& of_chunk);

}  // namespace ridgeline::schedule
