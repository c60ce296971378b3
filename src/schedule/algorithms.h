// Inside of the schedule room: the algorithms, one a file, and what they share. Users include schedule/actions.h.
//
// An algorithm decides only the order of compute on each stage; StageWriter puts the messages around each compute.
#pragma once

#include "schedule/actions.h"

namespace ridgeline::schedule {

Schedule gpipe(int64_t stages, int64_t micro_batches);
Schedule one_f_one_b(int64_t stages, int64_t micro_batches);
Schedule interleaved(int64_t stages, int64_t chunks, int64_t micro_batches);  // m divides by p
Schedule forward_only(int64_t stages, int64_t micro_batches);

// A schedule without actions where stage s holds global stage s.
Schedule one_chunk_schedule(int64_t stages, int64_t micro_batches);

// Appends compute to one stage's list with the receive that it needs before it and the send of its result after it.
class StageWriter {
 public:
  StageWriter(Schedule& schedule, int64_t stage) : schedule_(schedule), stage_(stage) {}
  void forward(int64_t micro_batch, int64_t chunk = 0);
  void backward(int64_t micro_batch, int64_t chunk = 0);

 private:
  void append_message(const Action& action);  // unless it has no peer

  Schedule& schedule_;
  int64_t stage_;
};

}  // namespace ridgeline::schedule
