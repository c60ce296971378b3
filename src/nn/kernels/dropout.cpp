#include "nn/kernels/dropout.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "nn/kernels/tensor_access.h"

#define RIDGELINE_TARGET_FILE "nn/kernels/dropout_loops.inl"
#include "core/for_each_target.h"

namespace ridgeline::nn {
namespace {

void check(const at::Tensor& x, const DropoutPlace& place, const at::Tensor& out) {
  check_dense(x, "dropout: x");
  check_like(out, x, "dropout: out");
  RIDGELINE_ASSERT(x.dim() == 3 && x.size(1) == static_cast<int64_t>(place.samples.size()));
  RIDGELINE_ASSERT(place.first_position >= 0 && place.first_position + x.size(0) <= (int64_t{1} << 32));
  RIDGELINE_ASSERT(place.first_channel >= 0 && place.first_channel + x.size(2) <= (int64_t{1} << 32));
  for (const int64_t sample : place.samples) RIDGELINE_ASSERT(sample >= 0);
}

void fused_dropout(const at::Tensor& x, const at::Tensor& residual, const DropoutRate& rate, const DropoutPlace& place,
                   const at::Tensor& out) {
  const int64_t batch = x.size(1);
  const int64_t channels = x.size(2);
  with_format(x.scalar_type(), [&](auto format) {
    using Format = decltype(format);
    const auto row = RIDGELINE_PICK(dropout_row<Format>);
    const auto* from = stored<Format>(x);
    const auto* added = stored<Format>(residual);
    auto* to = stored<Format>(out);
    at::parallel_for(0, x.size(0) * batch, rows_per_task(channels), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const auto position = static_cast<uint64_t>(place.first_position + i / batch);
        const auto sample = static_cast<uint64_t>(place.samples[static_cast<size_t>(i % batch)]);
        row(from + i * channels, added == nullptr ? nullptr : added + i * channels, to + i * channels, channels,
            place.key, position, sample, static_cast<uint64_t>(place.first_channel), rate.threshold, rate.scale);
      }
    });
  });
}

// One multiplication of Philox: the 64-bit product may wrap into the sign, which masking undoes.
struct Product {
  at::Tensor high, low;
};
Product multiply(const at::Tensor& word, int64_t multiplier) {
  const at::Tensor product = word * multiplier;
  return {at::bitwise_right_shift(product, 32).bitwise_and_(0xffffffffLL), product.bitwise_and(0xffffffffLL)};
}

// Philox4x32-10 of broadcastable int64 tensors that hold 32-bit words.
std::array<at::Tensor, 4> philox(std::array<at::Tensor, 4> counter, uint64_t key) {
  auto key0 = static_cast<uint32_t>(key);
  auto key1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const Product product0 = multiply(counter[0], 0xD2511F53LL);
    const Product product1 = multiply(counter[2], 0xCD9E8D57LL);
    counter = {at::bitwise_xor(product1.high, counter[1]).bitwise_xor(static_cast<int64_t>(key0)), product1.low,
               at::bitwise_xor(product0.high, counter[3]).bitwise_xor(static_cast<int64_t>(key1)), product0.low};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

// True where the element of a tensor of `sizes` is kept.
at::Tensor keep_mask(at::IntArrayRef sizes, const at::TensorOptions& device, const DropoutRate& rate,
                     const DropoutPlace& place) {
  const auto options = device.dtype(at::kLong);
  const int64_t first_group = place.first_channel / 64;
  const int64_t groups = (place.first_channel + sizes[2] + 63) / 64 - first_group;
  const at::Tensor samples =
      at::tensor(at::ArrayRef<int64_t>(place.samples.data(), place.samples.size()), at::kLong).to(options.device());
  const at::Tensor position =
      at::arange(place.first_position, place.first_position + sizes[0], options).view({-1, 1, 1});
  const at::Tensor block = at::arange(first_group * 8, (first_group + groups) * 8, options).view({1, 1, -1});
  const auto random = philox({block, position, samples.bitwise_and(0xffffffffLL).view({1, -1, 1}),
                              at::bitwise_right_shift(samples, 32).view({1, -1, 1})},
                             place.key);
  std::vector<at::Tensor> fields;
  for (const at::Tensor& word : random) {
    const at::Tensor rows = word.expand({sizes[0], sizes[1], groups * 8}).reshape({sizes[0], sizes[1], groups, 8});
    fields.push_back(rows.bitwise_and(0xffff).ge(static_cast<int64_t>(rate.threshold)));
    fields.push_back(at::bitwise_right_shift(rows, 16).ge(static_cast<int64_t>(rate.threshold)));
  }
  return at::stack(fields, 3)
      .view({sizes[0], sizes[1], groups * 64})
      .narrow(2, place.first_channel - first_group * 64, sizes[2]);
}

}  // namespace

void apply_dropout(const at::Tensor& x, const DropoutRate& rate, const DropoutPlace& place, const at::Tensor& out) {
  check(x, place, out);
  if (!x.is_cpu()) return plain::apply_dropout(x, {}, rate, place, out);
  fused_dropout(x, {}, rate, place, out);
}

void apply_dropout_and_add(const at::Tensor& x, const at::Tensor& residual, const DropoutRate& rate,
                           const DropoutPlace& place, const at::Tensor& out) {
  check(x, place, out);
  check_like(residual, x, "dropout: residual");
  if (!x.is_cpu()) return plain::apply_dropout(x, residual, rate, place, out);
  fused_dropout(x, residual, rate, place, out);
}

void plain::apply_dropout(const at::Tensor& x, const at::Tensor& residual, const DropoutRate& rate,
                          const DropoutPlace& place, const at::Tensor& out) {
  check(x, place, out);
  const at::Tensor keep = keep_mask(x.sizes(), x.options(), rate, place);
  const at::Tensor scaled = x.to(at::kFloat).mul(rate.scale);
  const at::Tensor kept = at::where(keep, scaled, at::zeros({}, scaled.options()));
  out.copy_(residual.defined() ? kept.add_(residual) : kept);
}

}  // namespace ridgeline::nn
