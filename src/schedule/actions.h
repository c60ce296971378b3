// Pipeline schedules as data: for each stage the list of actions that it executes in order.
//
// The trainer walks a schedule with tensors, the simulator with durations, the tests with neither; so a schedule is
// written once and is at once trainable and predictable. A model is cut into `stages * chunks_per_stage` pieces in
// model order, the *global stages*; a stage holds `chunks_per_stage` of them, its chunks, and `global_stage` says
// which. Plain schedules have one chunk a stage; interleaved and V-shaped ones differ only in that table and in their
// lists.
//
//   const Schedule schedule = make_schedule(spec::ScheduleKind::one_f_one_b, 4, 16);
//   for (const Action& action : schedule.actions[my_stage]) execute(action);
//
// Contract with whoever executes a list:
//   * Sends are posted and not waited for (the tensor is kept alive until the send is done). A stage may be
//     `link_capacity` messages ahead of the matching receive on each link; so a transport where a send blocks until its
//     receive is posted needs sends on a stream, thread or communicator of their own.
//   * A receive stands right before the compute that needs it, or earlier where an earlier message of the same peer is
//     needed later; a send stands right after the compute that made it. Receives from one peer stand in the order in
//     which that peer sends, so a receive may be posted any number of actions earlier (prefetched) as long as receives
//     from one peer keep their order.
//   * Where a neighbour in model order lies on the same stage, no message is listed: the tensor is handed over.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spec/strategy.h"

namespace ridgeline::schedule {

// `backward` is backward_input and backward_weight in one; a micro-batch has either that one or those two.
enum class ActionKind {
  forward,
  backward,
  backward_input,
  backward_weight,
  send_activation,     // output of `chunk`, to the holder of the next global stage
  receive_activation,  // input of `chunk`, from the holder of the global stage before
  send_gradient,       // gradient of the input of `chunk`, to the holder of the global stage before
  receive_gradient     // gradient of the output of `chunk`, from the holder of the next global stage
};

struct Action {
  ActionKind kind = ActionKind::forward;
  int64_t micro_batch = 0;
  int64_t chunk = 0;  // of the stage that executes the action
  bool operator==(const Action&) const = default;
};
using StageActions = std::vector<Action>;

struct Place {
  int64_t stage = 0;
  int64_t chunk = 0;
  bool operator==(const Place&) const = default;
};

// What the work of one micro-batch on one global stage takes, in any unit: for schedules that are made by it. Whole
// numbers, so that every rank makes the same lists.
struct Work {
  int64_t forward = 1;
  int64_t backward_input = 1;
  int64_t backward_weight = 1;
};

struct Schedule {
  int64_t stages = 1;
  int64_t chunks_per_stage = 1;
  int64_t micro_batches = 1;
  bool has_backward = true;                        // false: evaluation
  std::vector<std::vector<int64_t>> global_stage;  // [stage][chunk]
  std::vector<StageActions> actions;               // [stage]
  // Messages that a link (from one stage to another) must hold, sent and not yet received, for the lists to end.
  int64_t link_capacity = 1;

  int64_t global_stages() const { return stages * chunks_per_stage; }
};

// The schedule of one training step under `strategy`, whose data axis is derived: that of its file, or made. `work` of
// each global stage, in order of the model; without, all are alike. Users who have a model at hand call
// cost::step_schedule, which gives it.
Schedule make_schedule(const spec::Strategy& strategy, const std::vector<Work>& work = {});

// The same of equal global stages. Throws InputError where stages or micro_batches is below one.
Schedule make_schedule(spec::ScheduleKind kind, int64_t stages, int64_t micro_batches);

// Interleaved 1F1B with `chunks` of the model on each stage (schedule/interleaved.cpp). Throws InputError where there
// are less than two stages or micro_batches does not divide by them.
Schedule make_interleaved_schedule(int64_t stages, int64_t chunks, int64_t micro_batches);

// Forward passes alone, for evaluation: any number of micro-batches, chunks where `strategy` has them.
Schedule make_forward_schedule(const spec::Strategy& strategy, int64_t micro_batches);

// global_stage of a schedule under `strategy`: chunks go round the stages, or down and back.
std::vector<std::vector<int64_t>> chunk_places(const spec::Strategy& strategy);

// Where a global stage lies; nothing for numbers before the first and after the last one.
std::optional<Place> holder(const Schedule& schedule, int64_t global_stage);

// The stage at the other end of a send or receive that `stage` executes; nothing for compute, for a message that would
// leave the model at either end, and where both ends are on `stage`.
std::optional<int64_t> peer(const Schedule& schedule, int64_t stage, const Action& action);

bool is_send(ActionKind kind);
bool is_receive(ActionKind kind);
std::string to_string(ActionKind kind);
// As traces call it, of a training or a simulation: "F 3" for the forward of micro-batch 3 on the first chunk, "B 3.1"
// for its backward on the second one ("BI" and "BW" for the halves), "send F 3" for a message.
std::string trace_name(const Action& action);
std::string to_string(const Action& action);  // such as "send_activation(micro_batch 3, chunk 0)"

}  // namespace ridgeline::schedule
