// Dynamic loss scaling for fp16: gradients are computed of the loss times a scale, so that small ones do not underflow.
// An overflow halves the scale and its step is skipped; after loss_scale_window good steps the scale doubles. In fp32
// and bf16 the scale is 1 and stays.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "spec/train.h"

namespace ridgeline::optim {

class LossScale {
 public:
  explicit LossScale(const spec::PrecisionSpec& precision);

  double scale() const { return scale_; }
  int64_t good_steps() const { return good_steps_; }  // since the scale last changed

  // Takes note of a step, skipped if its gradients were not finite. Throws Failure where fp16 gradients overflow at the
  // smallest scale already: then no scale helps.
  void update(bool overflow);

  // {"dynamic", "scale", "good_steps"}: all that a checkpoint needs.
  nlohmann::json state() const;
  // Throws InputError if `state` is not such a record. Between fp16 and another precision nothing is taken over: an
  // fp16 run that continues a bf16 checkpoint starts from its own initial_loss_scale.
  void restore(const nlohmann::json& state);

 private:
  bool dynamic_;
  int64_t window_;
  double scale_;
  int64_t good_steps_ = 0;
};

}  // namespace ridgeline::optim
