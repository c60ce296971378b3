// Stage: a contiguous range of units that one pipeline rank holds (all that it holds, or one of its chunks), as forward
// and backward on micro-batches.
//
// A stage owns no tensors but those of the micro-batches in flight, which its caller keeps as InFlight records.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "nn/context.h"
#include "nn/flat_parameters.h"
#include "nn/head.h"
#include "nn/residence.h"
#include "nn/rotary.h"
#include "nn/unit.h"

namespace ridgeline::nn {

// What a stage keeps of one micro-batch between its forward and the end of its backward.
struct InFlight {
  MicroBatch batch;
  std::vector<Saved> saved;                  // by unit of the stage
  std::vector<WeightGradientQueue> weights;  // by unit; filled by backward_input
};

class Stage {
 public:
  // Called with the number of a unit as soon as this micro-batch's part of its gradients has been added.
  using UnitFinished = std::function<void(int64_t unit)>;

  // `context`, `parameters` and `residence` must outlive the stage; without a residence all units are always there.
  Stage(const Context& context, const FlatParameters& parameters, spec::Range units, Residence* residence = nullptr);
  virtual ~Stage() = default;

  const spec::Range& units() const { return units_; }
  bool is_first() const { return units_.begin == 0; }
  bool is_last() const { return units_.end == spec::unit_count(context_.model); }

  // Shape of what passes between stages: [local rows, hidden].
  std::vector<int64_t> boundary_shape(const MicroBatch& batch) const;

  // input: undefined on the first stage. Returns the boundary tensor, or on the last stage the sum of token losses.
  virtual at::Tensor forward(const at::Tensor& input, InFlight& in_flight) const;
  // The same without keeping anything.
  virtual at::Tensor forward_only(const at::Tensor& input, const MicroBatch& batch) const;
  // Logits [rows, vocabulary]; on the last stage only.
  at::Tensor logits(const at::Tensor& input, const MicroBatch& batch) const;

  // The whole backward; output_gradient is undefined on the last stage. Returns the gradient of the input.
  virtual at::Tensor backward(const at::Tensor& output_gradient, InFlight& in_flight,
                              const UnitFinished& finished) const;
  // The same in two halves, for schedules that split it.
  virtual at::Tensor backward_input(const at::Tensor& output_gradient, InFlight& in_flight) const;
  virtual void backward_weight(InFlight& in_flight, const UnitFinished& finished) const;

 protected:
  // For a stage with passes of its own in place of units.
  Stage(const Context& context, spec::Range units) : context_(context), units_(units) {}

 private:
  void enter(size_t index, const Uses& uses, std::optional<size_t> next) const;
  void leave(size_t index, bool gradients_final) const;
  at::Tensor forward_unit(size_t index, const at::Tensor& input, const MicroBatch& batch, Saved* saved) const;
  at::Tensor backward_unit(size_t index, const at::Tensor& output_gradient, InFlight& in_flight,
                           WeightGradientQueue& weights) const;

  const Context& context_;
  spec::Range units_;
  Residence* residence_ = nullptr;
  std::optional<Rotary> rotary_;  // where the model has rotary positions
  std::vector<std::unique_ptr<Unit>> list_;
  const Head* head_ = nullptr;  // in list_, on the last stage
};

}  // namespace ridgeline::nn
