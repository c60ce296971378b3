#include "nn/rotary.h"

#include <cmath>

#include "nn/kernels/rotary.h"

namespace ridgeline::nn {

Rotary::Rotary(const spec::ModelSpec& model, at::Device device) {
  const std::vector<double> frequencies = spec::rotary_frequencies(model.rotary, model.head_size());
  const double factor = spec::rotary_attention_factor(model.rotary);
  const auto pairs = static_cast<int64_t>(frequencies.size());
  at::Tensor cosines = at::empty({model.sequence, pairs}, at::kFloat), sines = at::empty_like(cosines);
  float* cosine = cosines.data_ptr<float>();
  float* sine = sines.data_ptr<float>();
  for (int64_t position = 0; position < model.sequence; ++position) {
    for (const double frequency : frequencies) {
      // Frequency and angle are rounded to fp32, as in the programs that published weights were trained with: at
      // position 100,000 the rounding turns by more than a hundredth of a radian.
      const float angle = static_cast<float>(position) * static_cast<float>(frequency);
      *cosine++ = static_cast<float>(factor * std::cos(static_cast<double>(angle)));
      *sine++ = static_cast<float>(factor * std::sin(static_cast<double>(angle)));
    }
  }
  cosines_ = cosines.to(device);
  sines_ = sines.to(device);
}

void Rotary::forward(const at::Tensor& x, const at::Tensor& positions) const {
  rotate(x, cosines_, sines_, positions, /*back=*/false);
}

void Rotary::backward(const at::Tensor& gradient, const at::Tensor& positions) const {
  rotate(gradient, cosines_, sines_, positions, /*back=*/true);
}

}  // namespace ridgeline::nn
