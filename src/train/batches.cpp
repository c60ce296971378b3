#include "train/batches.h"

#include <span>

#include "nn/kernels/cross_entropy.h"

namespace ridgeline::train {
namespace {

std::span<int64_t> row(at::Tensor& tensor, int64_t index, int64_t sequence) {
  return {tensor.data_ptr<int64_t>() + index * sequence, static_cast<size_t>(sequence)};
}

}  // namespace

nn::MicroBatch Batches::empty_batch() const {
  nn::MicroBatch batch;
  batch.size = strategy_.micro_batch;
  batch.sequence = source_.sequence();
  // Pinned memory lets the copy to an accelerator run beside computation.
  const auto options = at::TensorOptions().dtype(at::kLong).pinned_memory(device_.is_cuda());
  batch.tokens = at::zeros({batch.tokens_total()}, options);
  batch.targets = at::full({batch.tokens_total()}, nn::kIgnoredTarget, options);
  if (source_.separates_documents()) batch.positions = at::zeros({batch.tokens_total()}, options);
  batch.samples = at::zeros({batch.size}, at::kLong);
  return batch;
}

void Batches::to_device(nn::MicroBatch& batch) const {
  if (device_.is_cpu()) return;
  if (batch.positions.defined()) batch.positions = batch.positions.to(device_, /*non_blocking=*/true);
  batch.tokens = batch.tokens.to(device_, /*non_blocking=*/true);
  batch.targets = batch.targets.to(device_, /*non_blocking=*/true);
}

nn::MicroBatch Batches::training(int64_t step, int64_t first_sample, int64_t index, double gradient_scale) const {
  nn::MicroBatch batch = empty_batch();
  batch.step = step;
  batch.gradient_scale = gradient_scale;
  for (int64_t i = 0; i < batch.size; ++i) {
    // Counted from the samples consumed, not from the step: a resumed run may have another global batch.
    const int64_t sample = first_sample + data::global_sample(0, strategy_.global_batch, index, data_rank_,
                                                              strategy_.data, strategy_.micro_batch, i);
    batch.samples.data_ptr<int64_t>()[i] = sample;
    source_.training_sample(sample, row(batch.tokens, i, batch.sequence), row(batch.targets, i, batch.sequence));
    if (source_.separates_documents()) source_.training_positions(sample, row(batch.positions, i, batch.sequence));
  }
  to_device(batch);
  return batch;
}

int64_t Batches::evaluation_micro_batches(int64_t samples) const {
  const int64_t at_once = strategy_.micro_batch * strategy_.data;
  return (samples + at_once - 1) / at_once;
}

nn::MicroBatch Batches::evaluation(int64_t samples, int64_t index) const {
  nn::MicroBatch batch = empty_batch();
  batch.training = false;
  for (int64_t i = 0; i < batch.size; ++i) {
    const int64_t sample = (index * strategy_.data + data_rank_) * batch.size + i;
    batch.samples.data_ptr<int64_t>()[i] = sample;
    if (sample >= samples) continue;
    source_.validation_sample(sample, row(batch.tokens, i, batch.sequence), row(batch.targets, i, batch.sequence));
    if (source_.separates_documents()) source_.validation_positions(sample, row(batch.positions, i, batch.sequence));
  }
  to_device(batch);
  return batch;
}

}  // namespace ridgeline::train
