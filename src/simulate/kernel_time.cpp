#include "simulate/kernel_time.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "simulate/shape_factor.h"

namespace ridgeline::simulate {
namespace {

struct Tile {
  double rows, columns, efficiency;
};
// Efficiencies relative to the largest tile: a tile of r x c loads (r + c) / (r c) operands for each result.
constexpr Tile kTiles[] = {{256, 128, 1.0}, {128, 128, 0.95}, {128, 64, 0.82}, {64, 64, 0.65}};

double best_fill(double units, double batch, double m, double n) {
  double best = 0;
  for (const Tile& tile : kTiles) {
    for (const bool turned : {false, true}) {
      const double rows = turned ? tile.columns : tile.rows, columns = turned ? tile.rows : tile.columns;
      const double tiles = batch * std::ceil(m / rows) * std::ceil(n / columns);
      const double waves = std::ceil(tiles / units);
      best = std::max(best, tile.efficiency * batch * m * n / (waves * units * rows * columns));
    }
  }
  return best;
}

double half(double size, double half_size) { return size / (size + half_size); }

}  // namespace

double product_efficiency(const spec::Machine& machine, int64_t batch, int64_t m, int64_t n, int64_t k) {
  const spec::StackFacts& stack = machine.stack;
  const double fill = best_fill(static_cast<double>(machine.device.compute_units), static_cast<double>(batch),
                                static_cast<double>(m), static_cast<double>(n));
  return stack.product_efficiency * half(static_cast<double>(k), stack.product_half_depth) *
         half(static_cast<double>(std::min(m, n)), stack.product_half_tokens) * fill;
}

double kernel_seconds(const spec::Machine& machine, spec::Precision compute, const cost::Kernel& kernel) {
  const spec::StackFacts& stack = machine.stack;
  const double element = compute == spec::Precision::fp32 ? 4 : 2;
  const double peak = machine.peak_flops(compute);
  double arithmetic = 0, bytes = kernel.bytes;
  switch (kernel.kind) {
    case cost::KernelKind::product: {
      const double batch = static_cast<double>(kernel.batch), m = static_cast<double>(kernel.m),
                   n = static_cast<double>(kernel.n), k = static_cast<double>(kernel.k);
      // Products in 8 bits have a peak and an efficiency of their own; how they depend on the shape is the same.
      const double rate = kernel.in_fp8 ? machine.device.peak_fp8_tflops * 1e12 * stack.fp8_product_efficiency /
                                              stack.product_efficiency
                                        : peak;
      arithmetic = 2 * batch * m * n * k /
                   (rate * product_efficiency(machine, kernel.batch, kernel.m, kernel.n, kernel.k)) *
                   product_factor(machine.shapes, kernel.batch, kernel.m, kernel.n, kernel.k);
      bytes += batch * ((m * k + k * n) * (kernel.in_fp8 ? 1 : element) + m * n * element);
      break;
    }
    case cost::KernelKind::attention:
      arithmetic = kernel.flops / (peak * stack.attention_efficiency);
      break;
    case cost::KernelKind::attention_backward:
      arithmetic = kernel.flops / (peak * stack.attention_backward_efficiency);
      break;
    case cost::KernelKind::pass:
      break;
  }
  const double transfer = bytes / (machine.device.memory_gb_per_s * 1e9 * stack.memory_efficiency);
  return std::max({arithmetic, transfer, stack.launch_us * 1e-6});
}

double kernels_seconds(const spec::Machine& machine, spec::Precision compute,
                       const std::vector<cost::Kernel>& kernels) {
  double total = 0;
  for (const cost::Kernel& kernel : kernels) total += kernel_seconds(machine, compute, kernel);
  return total;
}

}  // namespace ridgeline::simulate
