// Memory of a stage, fast enough for mass enumeration: the same counts as cost/memory.h (parameters by the
// declarations, saved tensors by their table), taken once for each unit and tensor size, and multiplied.
//
// Other programs' recipes are counted by their published forms: with full recomputation a layer keeps its input, and a
// slice of 1/tensor for each micro-batch where messages are scattered; without, s b h (10 + 24 / t) bytes and with
// unfused attention 5 a s^2 b / t more; selective recomputation of attention with sequence parallelism 34 s b h / t
// (Korthikanti et al. 2022, arXiv 2205.05198, table 2).
#pragma once

#include <map>
#include <string>
#include <tuple>

#include "cost/recipe.h"
#include "schedule/actions.h"
#include "simulate/prediction.h"
#include "spec/machine.h"
#include "spec/model.h"

namespace ridgeline::simulate {

class MemoryModel {
 public:
  MemoryModel(const spec::ModelSpec& model, const spec::Machine& machine, spec::Precision compute,
              const cost::Recipe& recipe)
      : model_(model), machine_(machine), compute_(compute), recipe_(recipe) {}

  // Of stage `stage` that holds `layers` layers. `strategy.data` must be derived.
  StageMemory stage(const spec::Strategy& strategy, int64_t stage, int64_t layers);
  // What tensors alone take at the stage's peak, without context, communicators and slack.
  static double allocated(const StageMemory& memory, double reserve) { return memory.total() - reserve; }
  // Context and communicators of a rank under `strategy`.
  double reserve(const spec::Strategy& strategy) const;
  double parameters(int64_t tensor, int64_t layers, bool first, bool last);
  // Static bytes of `parameters` of them.
  double static_bytes(const spec::Strategy& strategy, double parameters) const;
  Fit fit(const StageMemory& memory) const;

 private:
  // Elements of the working buffer in which units at work are whole (spec/flat_layout.h: layouts by units).
  double working_elements(const spec::Strategy& strategy, int64_t layers, bool first, bool last);
  void add_sharded(const spec::Strategy& strategy, int64_t layers, bool first, bool last, StageMemory& memory);
  struct Elements {
    double embedding = 0, layer = 0, head = 0, head_tied = 0;
  };
  struct Saved {
    double layer = 0, embedding = 0, head = 0, rebuilt = 0, scatter = 0, transient = 0;
    double deferred = 0;  // of a layer, between the halves of a split backward
  };
  const Elements& elements(int64_t tensor);
  const Saved& saved(const spec::Strategy& strategy);
  Saved count_saved(const spec::Strategy& strategy) const;
  Saved published_saved(const spec::Strategy& strategy) const;
  static double micro_batches_in_flight(const spec::Strategy& strategy, int64_t stage);
  // Saved tensors at the stage's peak, of micro-batches that keep `kept` before and `deferred` after the first half.
  double saved_bytes(const spec::Strategy& strategy, int64_t stage, double kept, double deferred);

  spec::ModelSpec model_;
  spec::Machine machine_;
  spec::Precision compute_;
  cost::Recipe recipe_;
  std::map<int64_t, Elements> elements_;
  std::map<std::string, schedule::Schedule> files_;  // schedules of strategies that name a file
  std::map<std::tuple<int64_t, bool, int64_t, int>, Saved> saved_;
};

}  // namespace ridgeline::simulate
