// ZB-V (Qi et al. 2023, arXiv 2401.10241, section 6; its family: arXiv 2405.15362): each stage holds two chunks, on the
// way down the stages and back, so that the first and the last piece of the model lie on stage 0 and the backward of a
// micro-batch can begin where its forward began. Weight gradients fill what would be waiting.
//
// The lists are made by a greedy simulation with the work of each piece given: a stage that is free takes the backward
// for the input that is ready, else a forward, else a weight gradient. A stage keeps at most 2 p (micro-batch, chunk)
// pairs, as much as 1F1B's first stage, and one place is left for the chunk on the way back: it frees places, the other
// takes them. Where forward and both backwards are equal, a step of m >= p micro-batches lasts 6 m + p - 1 of them (of
// a chunk; a few more from 8 stages on), against 1F1B's 6 (m + p - 1).
#include <limits>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "core/error.h"
#include "schedule/algorithms.h"
#include "schedule/check.h"

namespace ridgeline::schedule {
namespace {

constexpr int64_t never = std::numeric_limits<int64_t>::max();

class Greedy {
 public:
  Greedy(Schedule& schedule, const std::vector<Work>& work)
      : schedule_(schedule),
        work_(work),
        most_held_(2 * schedule.stages),
        stages_(schedule.stages),
        forward_end_(schedule.global_stages() * schedule.micro_batches, never),
        backward_end_(forward_end_) {
    for (int64_t stage = 0; stage < schedule.stages; ++stage) {
      stages_[stage].writer = std::make_unique<StageWriter>(schedule, stage);
      wake_.insert({0, stage});
    }
  }

  void run() {
    int64_t left = 3 * schedule_.global_stages() * schedule_.micro_batches;
    while (!wake_.empty()) {
      const auto [time, stage] = *wake_.begin();
      wake_.erase(wake_.begin());
      if (stages_[stage].free_at > time || !take_turn(stage, time)) continue;
      --left;
    }
    RIDGELINE_ASSERT(left == 0);
  }

 private:
  struct Stage {
    std::unique_ptr<StageWriter> writer;
    int64_t free_at = 0;
    int64_t held = 0;
    int64_t next_forward[2] = {0, 0};  // by chunk: micro-batch
    int64_t next_backward[2] = {0, 0};
    std::vector<std::pair<int64_t, int64_t>> weights;  // put off, in order: micro-batch and chunk
    size_t next_weight = 0;
  };

  int64_t piece(int64_t global_stage, int64_t micro_batch) const {
    return global_stage * schedule_.micro_batches + micro_batch;
  }

  bool forward_ready(int64_t stage, int64_t chunk, int64_t time) const {
    const int64_t micro_batch = stages_[stage].next_forward[chunk], here = schedule_.global_stage[stage][chunk];
    if (micro_batch == schedule_.micro_batches) return false;
    const int64_t places = most_held_ - stages_[stage].held - (chunk == 0 ? 1 : 0);
    return places > 0 && (here == 0 || forward_end_[piece(here - 1, micro_batch)] <= time);
  }

  bool backward_ready(int64_t stage, int64_t chunk, int64_t time) const {
    const int64_t micro_batch = stages_[stage].next_backward[chunk], here = schedule_.global_stage[stage][chunk];
    if (micro_batch == schedule_.micro_batches || forward_end_[piece(here, micro_batch)] > time) return false;
    return here == schedule_.global_stages() - 1 || backward_end_[piece(here + 1, micro_batch)] <= time;
  }

  // Starts one piece of work, if there is any; whether it did.
  bool take_turn(int64_t stage, int64_t time) {
    Stage& state = stages_[stage];
    for (const int64_t chunk : {0, 1}) {
      if (!backward_ready(stage, chunk, time)) continue;
      const int64_t micro_batch = state.next_backward[chunk]++, here = schedule_.global_stage[stage][chunk];
      state.writer->backward_input(micro_batch, chunk);
      state.weights.push_back({micro_batch, chunk});
      backward_end_[piece(here, micro_batch)] = occupy(stage, time, work_[here].backward_input, here - 1);
      return true;
    }
    for (const int64_t chunk : {1, 0}) {
      if (!forward_ready(stage, chunk, time)) continue;
      const int64_t micro_batch = state.next_forward[chunk]++, here = schedule_.global_stage[stage][chunk];
      state.writer->forward(micro_batch, chunk);
      ++state.held;
      forward_end_[piece(here, micro_batch)] = occupy(stage, time, work_[here].forward, here + 1);
      return true;
    }
    if (state.next_weight == state.weights.size()) return false;
    const auto [micro_batch, chunk] = state.weights[state.next_weight++];
    state.writer->backward_weight(micro_batch, chunk);
    --state.held;
    occupy(stage, time, work_[schedule_.global_stage[stage][chunk]].backward_weight, -1);
    return true;
  }

  // The stage works until then; whoever holds `neighbour` may have got what it waits for.
  int64_t occupy(int64_t stage, int64_t time, int64_t duration, int64_t neighbour) {
    const int64_t end = time + duration;
    stages_[stage].free_at = end;
    wake_.insert({end, stage});
    if (const auto place = holder(schedule_, neighbour)) wake_.insert({end, place->stage});
    return end;
  }

  Schedule& schedule_;
  const std::vector<Work>& work_;
  int64_t most_held_;
  std::vector<Stage> stages_;
  std::vector<int64_t> forward_end_, backward_end_;  // by piece
  std::set<std::pair<int64_t, int64_t>> wake_;       // time and stage
};

}  // namespace

Schedule zero_bubble_v(int64_t stages, int64_t micro_batches, const std::vector<Work>& work) {
  RIDGELINE_ASSERT(static_cast<int64_t>(work.size()) == 2 * stages);
  for (const Work& piece : work) {
    RIDGELINE_ASSERT(piece.forward > 0 && piece.backward_input > 0 && piece.backward_weight > 0);
  }
  Schedule schedule = empty_schedule(vee_places(stages), micro_batches);
  Greedy(schedule, work).run();
  order_receives(schedule);
  schedule.link_capacity = least_link_capacity(schedule);
  return schedule;
}

}  // namespace ridgeline::schedule
