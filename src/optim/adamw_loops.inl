// The AdamW update of a run of elements.

namespace ridgeline::RIDGELINE_TARGET {
namespace {

// `parameter` may be null where the master is the parameter.
template <typename Format>
void adamw_elements(float* master, float* first_moment, float* second_moment, const float* gradient,
                    typename Format::Stored* parameter, int64_t count,
                    const ::ridgeline::optim::AdamWFactors& factors) {
  for (int64_t i = 0; i < count; i += kLanes) {
    const int64_t left = count - i;
    const Floats g = load<Float32>(gradient + i, left) * factors.gradient_scale;
    Floats m = load<Float32>(first_moment + i, left);
    m += (g - m) * factors.first_share;
    const Floats v = load<Float32>(second_moment + i, left) * factors.beta2 + g * g * factors.second_share;
    const Floats denominator = square_root(v) * factors.inverse_sqrt_correction2 + factors.epsilon;
    const Floats value = load<Float32>(master + i, left) * factors.keep - factors.step_size * m / denominator;
    store<Float32>(first_moment + i, m, left);
    store<Float32>(second_moment + i, v, left);
    store<Float32>(master + i, value, left);
    if (parameter != nullptr) store<Format>(parameter + i, value, left);
  }
}

}  // namespace
}  // namespace ridgeline::RIDGELINE_TARGET
