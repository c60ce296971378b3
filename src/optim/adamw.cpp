#include "optim/adamw.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cmath>

#include "nn/kernels/tensor_access.h"

namespace ridgeline::optim {
namespace {

// What an element's update needs, rounded once from double.
struct AdamWFactors {
  float gradient_scale, first_share, beta2, second_share, epsilon, keep, step_size, inverse_sqrt_correction2;
};

}  // namespace
}  // namespace ridgeline::optim

#define RIDGELINE_TARGET_FILE "optim/adamw_loops.inl"
#include "core/for_each_target.h"

namespace ridgeline::optim {
namespace {

AdamWFactors make_factors(const AdamWSettings& settings, bool decay, int64_t step, double gradient_scale) {
  const double t = static_cast<double>(step + 1);
  const double correction1 = 1.0 - std::pow(settings.beta1, t);
  const double correction2 = 1.0 - std::pow(settings.beta2, t);
  return {static_cast<float>(gradient_scale),
          static_cast<float>(1.0 - settings.beta1),
          static_cast<float>(settings.beta2),
          static_cast<float>(1.0 - settings.beta2),
          static_cast<float>(settings.epsilon),
          static_cast<float>(1.0 - (decay ? settings.learning_rate * settings.weight_decay : 0.0)),
          static_cast<float>(settings.learning_rate / correction1),
          static_cast<float>(1.0 / std::sqrt(correction2))};
}

void check(const at::Tensor& master, const at::Tensor& first_moment, const at::Tensor& second_moment,
           const at::Tensor& gradient, const at::Tensor& parameter, std::span<const AdamWRange> ranges, int64_t step) {
  const int64_t elements = master.numel();
  nn::check_vector(master, elements, at::kFloat, "adamw: master");
  nn::check_vector(first_moment, elements, at::kFloat, "adamw: first_moment");
  nn::check_vector(second_moment, elements, at::kFloat, "adamw: second_moment");
  nn::check_vector(gradient, elements, at::kFloat, "adamw: gradient");
  nn::check_vector(parameter, elements, parameter.scalar_type(), "adamw: parameter");
  RIDGELINE_ASSERT(master.dim() == 1 && step >= 0);
  for (const AdamWRange& range : ranges) {
    RIDGELINE_ASSERT(range.begin >= 0 && range.begin <= range.end && range.end <= elements);
  }
}

}  // namespace

void adamw_step(const at::Tensor& master, const at::Tensor& first_moment, const at::Tensor& second_moment,
                const at::Tensor& gradient, const at::Tensor& parameter, std::span<const AdamWRange> ranges,
                const AdamWSettings& settings, int64_t step, double gradient_scale) {
  if (!master.is_cpu()) {
    return plain::adamw_step(master, first_moment, second_moment, gradient, parameter, ranges, settings, step,
                             gradient_scale);
  }
  check(master, first_moment, second_moment, gradient, parameter, ranges, step);
  const bool is_master = parameter.data_ptr() == master.data_ptr();
  nn::with_format(parameter.scalar_type(), [&](auto format) {
    using Format = decltype(format);
    const auto loop = RIDGELINE_PICK(adamw_elements<Format>);
    auto* rounded = is_master ? nullptr : nn::stored<Format>(parameter);
    for (const AdamWRange& range : ranges) {
      const AdamWFactors factors = make_factors(settings, range.decay, step, gradient_scale);
      at::parallel_for(range.begin, range.end, nn::kGrainElements, [&](int64_t begin, int64_t end) {
        loop(nn::floats(master) + begin, nn::floats(first_moment) + begin, nn::floats(second_moment) + begin,
             nn::floats(gradient) + begin, rounded == nullptr ? nullptr : rounded + begin, end - begin, factors);
      });
    }
  });
}

void plain::adamw_step(const at::Tensor& master, const at::Tensor& first_moment, const at::Tensor& second_moment,
                       const at::Tensor& gradient, const at::Tensor& parameter, std::span<const AdamWRange> ranges,
                       const AdamWSettings& settings, int64_t step, double gradient_scale) {
  check(master, first_moment, second_moment, gradient, parameter, ranges, step);
  const at::Tensor count = at::full({}, static_cast<double>(step + 1), master.options());
  for (const bool decay : {true, false}) {
    std::vector<at::Tensor> masters, gradients, first, second;
    for (const AdamWRange& range : ranges) {
      if (range.decay != decay || range.begin == range.end) continue;
      const auto part = [&](const at::Tensor& flat) { return flat.narrow(0, range.begin, range.end - range.begin); };
      masters.push_back(part(master));
      gradients.push_back(part(gradient));
      first.push_back(part(first_moment));
      second.push_back(part(second_moment));
    }
    if (masters.empty()) continue;
    if (gradient_scale != 1.0) at::_foreach_mul_(gradients, gradient_scale);
    const std::vector<at::Tensor> counts(masters.size(), count);
    at::_fused_adamw_(masters, gradients, first, second, {}, counts, settings.learning_rate, settings.beta1,
                      settings.beta2, decay ? settings.weight_decay : 0.0, settings.epsilon, /*amsgrad=*/false,
                      /*maximize=*/false);
  }
  if (parameter.data_ptr() == master.data_ptr()) return;
  for (const AdamWRange& range : ranges) {
    const int64_t size = range.end - range.begin;
    parameter.narrow(0, range.begin, size).copy_(master.narrow(0, range.begin, size));
  }
}

}  // namespace ridgeline::optim
