// Evaluator: what a step of a strategy takes, for one model on one machine.
//
//   Evaluator evaluator(model, load_machine("frontier"), cost::recipe("ridgeline"), Precision::bf16);
//   Prediction prediction = evaluator.predict(strategy);          // closed form, microseconds
//   Timeline timeline = evaluator.play(strategy);                 // executes the schedule's actions
//
// Kernel and message times of a unit depend on few of a strategy's numbers; they are kept, so that most evaluations are
// some arithmetic. Not safe for several threads at once: give each its own.
//
// Closed form with forward F_s, backward B_s of a micro-batch on stage s, m micro-batches, p stages, v chunks a stage
// and a message of c seconds (F, B without stage: those of the slowest):
//   1F1B         sum (F_s + B_s) + (m-1) (F + B) + 2 c (m + p - 2)      where p > 1: 1F1B waits for both messages
//   GPipe        sum F_s + (m-1) F + sum B_s + (m-1) B + 2 c (p-1)
//   ZB-H1        m (F + B) + sum of the others (F_s + max(0, B_s - 2 W_s)) + 2 c min(m + p - 2, 2 (p-1)), W of B
//   ZB-V         m (F + B) + what it waits (simulate/evaluator_vee.cpp)
//   interleaved  sum (F_s + B_s) / v + (m - 1/v) (F + B) + 2 c v (m - 1/v) + 2 c (p-1); c (p-1) where messages hide
// They are those of Narayanan et al. 2021 (arXiv 2104.04473) with messages; tests hold the event simulation against
// them. On a ring of c ranks (strategy.context) the keys of the next step travel beside the attention to those at hand,
// and in the backward their gradients one step behind: what a step's messages take longer than its block is exposed,
// and the last gradients are. With ZeRO-2 each layer's gradients are scattered as its backward leaves it, of every
// micro-batch, with ZeRO-3 its weights are gathered before its forward and its backward as well, beside the compute of
// its neighbour: what is longer than that compute is exposed.
//
// A schedule from a file (strategy.schedule_file) has no closed form: it is played.
//
// After the last backward come what of the gradients' reduction is not hidden (with ZeRO-0 and -1), the tied
// embedding's sum, the gathering
// of parameters and the optimizer.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "cost/kernels.h"
#include "cost/recipe.h"
#include "simulate/prediction.h"
#include "simulate/stage_memory.h"
#include "simulate/timeline.h"
#include "spec/machine.h"
#include "spec/train.h"

namespace ridgeline::simulate {

// Seconds of one micro-batch on one unit or stage.
struct PassTimes {
  double forward_compute = 0;
  double forward_comm = 0;      // tensor axis, exposed
  double forward_context = 0;   // context axis, exposed
  double backward_compute = 0;  // recomputation included
  double backward_comm = 0;
  double backward_context = 0;
  double forward_expert = 0;  // tokens on their way to experts and back
  double backward_expert = 0;
  double backward_weight = 0;  // of backward_compute: what a schedule that splits the backward may put off
  double forward() const { return forward_compute + forward_comm + forward_context + forward_expert; }
  double backward() const { return backward_compute + backward_comm + backward_context + backward_expert; }
  double both() const { return forward() + backward(); }
  void add(const PassTimes& other, double times);
};

// One stage in depth.
struct StageReport {
  int64_t layers = 0;
  PassTimes times;  // of a micro-batch
  StageMemory memory;
  double parameters = 0;  // of a device
};

// One part of a unit: kernels alone, and what a micro-batch keeps of it for backward.
struct PartReport {
  std::string name;    // "embedding", "attention", "mlp" (of one layer) or "head"
  double forward = 0;  // seconds of a micro-batch
  double backward = 0;
  double recompute = 0;
  double saved_bytes = 0;
};

class Evaluator {
 public:
  Evaluator(const spec::ModelSpec& model, const spec::Machine& machine, const cost::Recipe& recipe,
            spec::Precision compute);

  // `strategy.data` must be derived (spec/strategy.h).
  Prediction predict(const spec::Strategy& strategy);
  // Memory alone: the fullest stage's; cheaper, and first in a search.
  StageMemory fullest(const spec::Strategy& strategy, int64_t* stage = nullptr);
  MemoryModel& memory() { return memory_; }

  std::vector<StageReport> stages(const spec::Strategy& strategy);
  std::vector<PartReport> parts(const spec::Strategy& strategy);
  double message_seconds(const spec::Strategy& strategy) const;
  // The pipeline's part of the step, action by action.
  Timeline play(const spec::Strategy& strategy);

  const spec::ModelSpec& model() const { return model_; }
  const spec::Machine& machine() const { return machine_; }
  const cost::Recipe& recipe() const { return recipe_; }
  spec::Precision compute() const { return compute_; }

 private:
  struct UnitTimes {
    PassTimes embedding, layer, head;
  };
  struct StepTail {
    double data_comm = 0;
    double optimizer = 0;
    double slowed = 0;  // what compute loses beside hidden reductions
  };

  // Of a pipeline that is laid out as a V: seconds without work, and how many messages are waited for.
  struct Waiting {
    double seconds = 0;
    double messages = 0;
  };

  const UnitTimes& unit_times(const spec::Strategy& strategy);
  PassTimes measure(const spec::Strategy& strategy, int64_t unit);
  void add_context(const spec::Strategy& strategy, const cost::UnitWork& work, PassTimes& times) const;
  PassTimes stage_times(const UnitTimes& units, const spec::Strategy& strategy, int64_t stage, int64_t layers) const;
  std::vector<int64_t> held_layers(const spec::Strategy& strategy) const;
  const std::vector<int64_t>& stage_layers(const spec::Strategy& strategy);
  std::vector<ChunkDurations> chunk_durations(const spec::Strategy& strategy);
  const schedule::Schedule& small_vee(int64_t stages, int64_t micro_batches, spec::Recompute recompute);
  Waiting small_waiting(int64_t stages, int64_t micro_batches, spec::Recompute recompute, const PassTimes& slowest);
  Waiting vee_waiting(const spec::Strategy& strategy, const PassTimes& slowest);
  void pipeline_time(const spec::Strategy& strategy, const std::vector<int64_t>& layers, Prediction& prediction);
  PassTimes sharding_times(const spec::Strategy& strategy, const UnitTimes& units, int64_t layers);
  StepTail tail(const spec::Strategy& strategy, double parameters, double experts, const PassTimes& first);
  // Of `parameters` elements, of which `experts` are among the ranks that share these.
  double over_shards(const spec::Strategy& strategy, cost::MessageKind kind, double parameters, double experts,
                     double bytes_of_element) const;
  void rates(Prediction& prediction) const;

  spec::ModelSpec model_;
  spec::Machine machine_;
  cost::Recipe recipe_;
  spec::Precision compute_;
  MemoryModel memory_;
  double sample_model_flops_ = 0;
  double sample_hardware_flops_[3] = {};  // by Recompute
  std::map<std::tuple<int64_t, bool, int64_t, int, int64_t, int, int64_t, bool>, UnitTimes> unit_times_;
  std::map<std::tuple<int64_t, int64_t, int>, std::vector<int64_t>> stage_layers_;
  std::vector<int64_t> explicit_layers_;
  std::map<std::tuple<int64_t, int64_t, int>, schedule::Schedule> small_vees_;
  std::map<std::tuple<int64_t, int64_t, int, int64_t, int64_t>, Waiting> small_waitings_;
};

}  // namespace ridgeline::simulate
