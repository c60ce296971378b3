#include "train/batches.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "nn/kernels/cross_entropy.h"

namespace ridgeline::train {
namespace {

std::span<int64_t> row(at::Tensor& tensor, int64_t index, int64_t length) {
  return {tensor.data_ptr<int64_t>() + index * length, static_cast<size_t>(length)};
}

// Of a whole sample what stands at `places`.
void copy_places(const std::vector<int64_t>& whole, const std::vector<spec::Range>& places, std::span<int64_t> part) {
  auto to = part.begin();
  for (const spec::Range& range : places) to = std::copy(whole.begin() + range.begin, whole.begin() + range.end, to);
}

}  // namespace

nn::MicroBatch Batches::empty_batch() const {
  nn::MicroBatch batch;
  const bool shares = strategy_.context > 1;
  batch.size = strategy_.micro_batch;
  batch.sequence = source_.sequence() / strategy_.context;
  if (shares) batch.places = strategy_.held_places(source_.sequence(), context_rank_);
  // Pinned memory lets the copy to an accelerator run beside computation.
  const auto options = at::TensorOptions().dtype(at::kLong).pinned_memory(device_.is_cuda());
  batch.tokens = at::zeros({batch.tokens_total()}, options);
  batch.targets = at::full({batch.tokens_total()}, nn::kIgnoredTarget, options);
  if (shares || source_.separates_documents()) batch.positions = at::zeros({batch.tokens_total()}, options);
  if (source_.separates_documents()) batch.documents = at::zeros({batch.size, source_.sequence()}, options);
  batch.samples = at::zeros({batch.size}, at::kLong);
  return batch;
}

void Batches::read(nn::MicroBatch& batch, int64_t index, Split split, int64_t sample) const {
  const int64_t sequence = source_.sequence();
  const std::vector<spec::Range> places = batch.places.empty() ? std::vector{spec::Range{0, sequence}} : batch.places;
  std::vector<int64_t> tokens(static_cast<size_t>(sequence)), targets(tokens), positions(tokens);
  const bool separates = source_.separates_documents();
  if (split == Split::training) {
    source_.training_sample(sample, tokens, targets);
    if (separates) source_.training_positions(sample, positions);
  } else {
    source_.validation_sample(sample, tokens, targets);
    if (separates) source_.validation_positions(sample, positions);
  }
  if (separates) {  // a document begins where a position is 0
    int64_t number = 0;
    const std::span<int64_t> documents = row(batch.documents, index, sequence);
    for (size_t token = 0; token < positions.size(); ++token) {
      number += positions[token] == 0 ? 1 : 0;
      documents[token] = number;
    }
  } else {
    std::iota(positions.begin(), positions.end(), 0);
  }
  copy_places(tokens, places, row(batch.tokens, index, batch.sequence));
  copy_places(targets, places, row(batch.targets, index, batch.sequence));
  if (batch.positions.defined()) copy_places(positions, places, row(batch.positions, index, batch.sequence));
}

void Batches::to_device(nn::MicroBatch& batch) const {
  if (device_.is_cpu()) return;
  for (at::Tensor* tensor : {&batch.positions, &batch.documents}) {
    if (tensor->defined()) *tensor = tensor->to(device_, /*non_blocking=*/true);
  }
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
    read(batch, i, Split::training, sample);
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
    read(batch, i, Split::validation, sample);
  }
  to_device(batch);
  return batch;
}

}  // namespace ridgeline::train
