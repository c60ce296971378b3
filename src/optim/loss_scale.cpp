#include "optim/loss_scale.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace ridgeline::optim {
namespace {

constexpr double kSmallest = 1.0;
constexpr double kLargest = 0x1p32;  // beyond it fp32 sums of scaled losses come near to overflow

}  // namespace

LossScale::LossScale(const spec::PrecisionSpec& precision)
    : dynamic_(precision.compute == spec::Precision::fp16),
      window_(std::max<int64_t>(1, precision.loss_scale_window)),
      scale_(dynamic_ ? std::clamp(precision.initial_loss_scale, kSmallest, kLargest) : 1.0) {}

void LossScale::update(bool overflow) {
  if (!dynamic_) return;
  if (overflow) {
    if (scale_ <= kSmallest) {
      throw Failure(
          "fp16 gradients are not finite at loss scale {}, the smallest there is: the training has diverged or fp16's "
          "range "
          "does not suffice; continue from an earlier checkpoint with a lower optimizer.lr, or use precision.compute = "
          "\"bf16\"",
          scale_);
    }
    scale_ = std::max(kSmallest, scale_ / 2);
    good_steps_ = 0;
  } else if (++good_steps_ >= window_) {
    scale_ = std::min(kLargest, scale_ * 2);
    good_steps_ = 0;
  }
}

nlohmann::json LossScale::state() const {
  return {{"dynamic", dynamic_}, {"scale", scale_}, {"good_steps", good_steps_}};
}

void LossScale::restore(const nlohmann::json& state) {
  const auto has = [&](const char* key) { return state.is_object() && state.contains(key); };
  if (!has("dynamic") || !has("scale") || !has("good_steps") || !state["dynamic"].is_boolean() ||
      !state["scale"].is_number() || !state["good_steps"].is_number_integer()) {
    throw InputError(
        "checkpoint state: loss_scale: expected {{\"dynamic\": boolean, \"scale\": number, \"good_steps\": integer}}, "
        "found "
        "{}; use another checkpoint",
        state.dump().substr(0, 200));
  }
  const double scale = state["scale"].get<double>();
  const int64_t good_steps = state["good_steps"].get<int64_t>();
  if (!(scale >= kSmallest && scale <= kLargest) || good_steps < 0) {
    throw InputError(
        "checkpoint state: loss_scale: found scale {} and good_steps {}: expected a scale from {} to {} and good_steps "
        "not "
        "negative; use another checkpoint",
        scale, good_steps, kSmallest, kLargest);
  }
  if (!dynamic_ || !state["dynamic"].get<bool>()) return;
  scale_ = scale;
  good_steps_ = good_steps;
}

}  // namespace ridgeline::optim
