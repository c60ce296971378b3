#include "optim/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"

namespace ridgeline::optim {

double learning_rate(const spec::OptimizerSpec& optimizer, int64_t total_steps, int64_t step) {
  RIDGELINE_ASSERT(step >= 0);
  const double t = static_cast<double>(step) + 1.0;
  const double warmup = static_cast<double>(optimizer.warmup_steps);
  if (t <= warmup) return optimizer.lr * t / warmup;

  const double end = static_cast<double>(optimizer.decay_steps > 0 ? optimizer.decay_steps : total_steps);
  const auto progress_from = [&](double begin) {
    return end > begin ? std::clamp((t - begin) / (end - begin), 0.0, 1.0) : 1.0;
  };
  double share = 1.0;  // of the way from min_lr to lr
  switch (optimizer.decay) {
    case spec::DecayKind::constant:
      return optimizer.lr;
    case spec::DecayKind::cosine:
      share = 0.5 * (1.0 + std::cos(std::numbers::pi * progress_from(warmup)));
      break;
    case spec::DecayKind::linear:
      share = 1.0 - progress_from(warmup);
      break;
    case spec::DecayKind::warmup_stable_decay:
      share = 1.0 - progress_from(std::max(warmup, optimizer.stable_fraction * end));
      break;
  }
  return optimizer.min_lr + (optimizer.lr - optimizer.min_lr) * share;
}

}  // namespace ridgeline::optim
