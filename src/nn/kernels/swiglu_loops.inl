// With s = 1 / (1 + e^-g): silu = g s, silu' = s (1 + g (1 - s)). 1 - s is formed as e^-g s, which has no cancellation.
// Where e^-g is large beyond fp32's range the exponential stays finite and s underflows, as silu and silu' do.

namespace ridgeline::RIDGELINE_TARGET {
namespace {

template <typename Format>
void swiglu_forward_elements(const typename Format::Stored* gate, const typename Format::Stored* up,
                             typename Format::Stored* out, int64_t count) {
  for (int64_t i = 0; i < count; i += kLanes) {
    const int64_t left = count - i;
    const Floats g = load<Format>(gate + i, left);
    store<Format>(out + i, g / (1.0f + exponential(-g)) * load<Format>(up + i, left), left);
  }
}

template <typename Format>
void swiglu_backward_elements(const typename Format::Stored* gradient, typename Format::Stored* gate,
                              typename Format::Stored* up, int64_t count) {
  for (int64_t i = 0; i < count; i += kLanes) {
    const int64_t left = count - i;
    const Floats dy = load<Format>(gradient + i, left);
    const Floats g = load<Format>(gate + i, left);
    const Floats u = load<Format>(up + i, left);
    const Floats e = exponential(-g);
    const Floats s = 1.0f / (1.0f + e);
    store<Format>(gate + i, dy * u * (s + g * s * (e * s)), left);
    store<Format>(up + i, dy * g * s, left);
  }
}

}  // namespace
}  // namespace ridgeline::RIDGELINE_TARGET
