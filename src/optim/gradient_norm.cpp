#include "optim/gradient_norm.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <vector>

#include "nn/kernels/tensor_access.h"

#define RIDGELINE_TARGET_FILE "optim/gradient_norm_loops.inl"
#include "core/for_each_target.h"

namespace ridgeline::optim {
namespace {

constexpr int64_t kBlock = 65536;
// A chunk's sum is formed in fp32 on a device; the chunks' sums are added in double.
constexpr int64_t kDeviceChunk = int64_t{1} << 22;

void check(const GradientPart& part, at::Device device) {
  nn::check_vector(part.gradient, part.gradient.numel(), at::kFloat, "square sum: gradient");
  if (part.gradient.device() != device) throw InternalError("square sum: gradient not on the device asked for");
}

}  // namespace

double sum_of_squares(const at::Tensor& gradient) {
  const GradientPart part{gradient, 1.0};
  if (!gradient.is_cpu()) return weighted_square_sum({&part, 1}, gradient.device()).item<double>();
  check(part, gradient.device());
  const int64_t elements = gradient.numel();
  std::vector<double> sums(static_cast<size_t>((elements + kBlock - 1) / kBlock));
  const auto loop = RIDGELINE_PICK(square_sum);
  at::parallel_for(0, static_cast<int64_t>(sums.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * kBlock;
      sums[static_cast<size_t>(block)] = loop(nn::floats(gradient) + first, std::min(kBlock, elements - first));
    }
  });
  double total = 0.0;
  for (const double sum : sums) total += sum;
  return total;
}

at::Tensor weighted_square_sum(std::span<const GradientPart> parts, at::Device device) {
  if (!device.is_cpu()) return plain::weighted_square_sum(parts, device);
  double total = 0.0;
  for (const GradientPart& part : parts) {
    check(part, device);
    total += part.weight * sum_of_squares(part.gradient);
  }
  return at::full({}, total, at::TensorOptions().dtype(at::kDouble).device(device));
}

at::Tensor plain::weighted_square_sum(std::span<const GradientPart> parts, at::Device device) {
  std::vector<at::Tensor> chunks;
  std::vector<double> weights;
  for (const GradientPart& part : parts) {
    check(part, device);
    const at::Tensor flat = part.gradient.view({-1});
    for (int64_t begin = 0; begin < flat.numel(); begin += kDeviceChunk) {
      chunks.push_back(flat.narrow(0, begin, std::min(kDeviceChunk, flat.numel() - begin)));
      weights.push_back(part.weight);
    }
  }
  const auto options = at::TensorOptions().dtype(at::kDouble).device(device);
  if (chunks.empty()) return at::zeros({}, options);
  const at::Tensor norms = at::stack(at::_foreach_norm(chunks, 2)).to(at::kDouble);
  return norms.square_().mul_(at::tensor(weights, at::kDouble).to(device, /*non_blocking=*/true)).sum();
}

}  // namespace ridgeline::optim
