// Inside of the schedule room: the algorithms, one a file, and what they share. Users include schedule/actions.h.
//
// An algorithm decides only the order of compute on each stage; StageWriter puts the messages around each compute.
#pragma once

#include "schedule/actions.h"

namespace ridgeline::schedule {

Schedule gpipe(int64_t stages, int64_t micro_batches);
Schedule one_f_one_b(int64_t stages, int64_t micro_batches);
Schedule interleaved(int64_t stages, int64_t chunks, int64_t micro_batches);  // m divides by p
Schedule zero_bubble(int64_t stages, int64_t micro_batches);
Schedule zero_bubble_v(int64_t stages, int64_t micro_batches, const std::vector<Work>& work);  // [global stage]
Schedule forward_only(std::vector<std::vector<int64_t>> global_stage, int64_t micro_batches);

// A schedule without actions where stage s holds global stage s.
Schedule one_chunk_schedule(int64_t stages, int64_t micro_batches);
// A schedule without actions whose global stages lie as given.
Schedule empty_schedule(std::vector<std::vector<int64_t>> global_stage, int64_t micro_batches);

// Global stages that go round the stages: stage s holds s, s + stages, s + 2 * stages ...
std::vector<std::vector<int64_t>> round_places(int64_t stages, int64_t chunks);
// A V: stage s holds s and 2 * stages - 1 - s.
std::vector<std::vector<int64_t>> vee_places(int64_t stages);

// Appends compute to one stage's list with the receive that it needs before it and the send of its result after it.
class StageWriter {
 public:
  StageWriter(Schedule& schedule, int64_t stage) : schedule_(schedule), stage_(stage) {}
  void forward(int64_t micro_batch, int64_t chunk = 0);
  void backward(int64_t micro_batch, int64_t chunk = 0) { backward(ActionKind::backward, micro_batch, chunk); }
  void backward_input(int64_t micro_batch, int64_t chunk = 0) {
    backward(ActionKind::backward_input, micro_batch, chunk);
  }
  void backward_weight(int64_t micro_batch, int64_t chunk = 0);
  void compute(const Action& action);  // the one of these that it names

 private:
  void backward(ActionKind kind, int64_t micro_batch, int64_t chunk);
  void append_message(const Action& action);  // unless it has no peer

  Schedule& schedule_;
  int64_t stage_;
};

// Moves receives forward in the lists so that each link's messages are received in the order in which they are sent,
// where a stage takes up messages of several chunks in another order. That makes nobody wait longer: what is received
// early was sent before what is waited for.
void order_receives(Schedule& schedule);

}  // namespace ridgeline::schedule
