// Proof that a schedule may be executed: whoever makes a schedule (or reads one) calls check before a rank is started.
#pragma once

#include <cstdint>

#include "schedule/actions.h"

namespace ridgeline::schedule {

// Throws InternalError that names stage, action and rule unless
//   well formed  sizes agree, every action names a known micro-batch and chunk, global stages are each held once;
//   complete     each stage runs each micro-batch once forward and once backward on each chunk (forward alone where
//                has_backward is false), with every message to and from a neighbour on another stage;
//   ordered      receive, compute, send; forward before backward; input before weight; and the order of the model
//                between chunks that lie on one stage;
//   matched      the messages from one stage to another are received in the order in which they are sent;
//   live         it ends when replayed, both with links of unlimited capacity and with links that hold one message.
void check(const Schedule& schedule);

// The most (micro-batch, chunk) pairs whose forward ran and whose backward for the weights did not, at any time on
// `stage`: what the stage keeps saved activations for. Zero without backward.
int64_t peak_in_flight(const Schedule& schedule, int64_t stage);

}  // namespace ridgeline::schedule
