// Memory of a stage, fast enough for mass enumeration: the same counts as cost/memory.h (parameters by the
// declarations, saved tensors by their table), taken once for each unit and tensor size, and multiplied by what the
// schedule has in flight (schedule/in_flight.h).
//
// Other programs keep the tensors of the same table (their sum is Korthikanti et al. 2022, arXiv 2205.05198, table 2:
// s b h (10 + 24 / t) bytes of a GPT's layer with dropout), and beside them dropout's masks, a byte an element, and where
// attention is not fused its scores: 5 a s^2 b / t bytes with dropout, 2 without. With a pipeline they keep a slice of
// 1/tensor of each message where messages are scattered.
#pragma once

#include <map>
#include <string>
#include <tuple>

#include "cost/local_shares.h"
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
  // Context and communicators of a rank under `strategy`.
  double reserve(const spec::Strategy& strategy) const;
  double parameters(const spec::Strategy& strategy, int64_t layers, bool first, bool last);
  // Those of them that are experts'.
  double experts(const spec::Strategy& strategy, int64_t layers);
  const cost::LocalShares& shares(const spec::Strategy& strategy);
  // Weights, gradients and optimizer state of `parameters` of them, of which `experts` are sharded as these are;
  // activations and buffers are zero.
  StageMemory statics(const spec::Strategy& strategy, double parameters, double experts) const;
  Fit fit(const StageMemory& memory) const;

  // Bytes of one micro-batch on one layer, by part ("attention", "mlp"): what is kept for backward, and what is dropped
  // and rebuilt there.
  struct LayerTensors {
    std::map<std::string, double> kept, dropped;
  };
  LayerTensors layer_tensors(const spec::Strategy& strategy) const;
  // The same of the embedding's or the head's unit, which nothing is dropped of.
  double end_bytes(const spec::Strategy& strategy, int64_t unit) const;

 private:
  struct Saved {  // bytes of one micro-batch
    double layer = 0, embedding = 0, head = 0, rebuilt = 0, scatter = 0, transient = 0;
    double deferred = 0;  // of a layer, between the halves of a split backward
  };
  const Saved& saved(const spec::Strategy& strategy);
  Saved count_saved(const spec::Strategy& strategy);
  double activations(const spec::Strategy& strategy, int64_t stage, int64_t layers);
  // Elements of the working buffer in which units at work are whole (spec/flat_layout.h: layouts by units).
  double working_elements(const spec::Strategy& strategy, int64_t layers, bool first, bool last);
  double sharding_buffers(const spec::Strategy& strategy, int64_t layers, bool first, bool last);
  double logits_buffers(const spec::Strategy& strategy);
  double context_buffers(const spec::Strategy& strategy);
  double element() const { return compute_ == spec::Precision::fp32 ? 4 : 2; }
  // Saved tensors at the peak of a stage with a split backward: micro-batches keep `kept` before and `deferred` after
  // its first half.
  double split_bytes(const spec::Strategy& strategy, int64_t stage, double kept, double deferred) const;
  // The same of a stage that follows a schedule from a file.
  double file_bytes(const spec::Strategy& strategy, int64_t stage, int64_t layers);

  spec::ModelSpec model_;
  spec::Machine machine_;
  spec::Precision compute_;
  cost::Recipe recipe_;
  std::map<std::tuple<int64_t, int64_t, bool>, cost::LocalShares> shares_;
  std::map<std::string, schedule::Schedule> files_;  // schedules of strategies that name a file
  std::map<std::tuple<int64_t, bool, int64_t, int, int64_t, int, int64_t, bool>, Saved> saved_;
};

}  // namespace ridgeline::simulate
