// How much a stage keeps saved tensors for at once, in closed form: what peak_in_flight (schedule/check.h) counts in the
// lists of actions, without making them. A planner asks for thousands of layouts; tests hold the two against each other.
#pragma once

#include <cstdint>

#include "spec/strategy.h"

namespace ridgeline::schedule {

struct InFlight {
  int64_t pairs = 0;      // (micro-batch, chunk) pairs of the stage
  int64_t embedding = 0;  // micro-batches of the model's first chunk; 0 where another stage holds it
  int64_t head = 0;       // micro-batches of its last chunk; 0 where another stage holds it
};

// `chunks` above one: interleaved 1F1B, whatever `kind`; then micro_batches divides by stages.
InFlight most_in_flight(spec::ScheduleKind kind, int64_t stages, int64_t chunks, int64_t micro_batches, int64_t stage);

}  // namespace ridgeline::schedule
