// Batches: the micro-batches of a step or of an evaluation for one data parallel replica, as device tensors; where
// ranks share sequences, this rank's parts of them.
#pragma once

#include <ATen/ATen.h>

#include "data/samples.h"
#include "nn/micro_batch.h"
#include "spec/strategy.h"

namespace ridgeline::train {

class Batches {
 public:
  // `data_rank` and `context_rank`: coordinates on these axes.
  Batches(const data::SampleSource& source, const spec::Strategy& strategy, int64_t data_rank, int64_t context_rank,
          at::Device device)
      : source_(source), strategy_(strategy), data_rank_(data_rank), context_rank_(context_rank), device_(device) {}

  // Micro-batch `index` of optimizer step `step`, whose samples begin at number `first_sample`. `gradient_scale` as in
  // nn::MicroBatch.
  nn::MicroBatch training(int64_t step, int64_t first_sample, int64_t index, double gradient_scale) const;

  // Micro-batch `index` of an evaluation over the first `samples` held-out samples; places past the last are ignored
  // targets, so that any number of samples is evaluated exactly.
  nn::MicroBatch evaluation(int64_t samples, int64_t index) const;
  // Micro-batches that each replica runs for an evaluation.
  int64_t evaluation_micro_batches(int64_t samples) const;

 private:
  enum class Split { training, validation };
  nn::MicroBatch empty_batch() const;
  // Reads sample number `sample` into place `index` of the batch.
  void read(nn::MicroBatch& batch, int64_t index, Split split, int64_t sample) const;
  void to_device(nn::MicroBatch& batch) const;

  const data::SampleSource& source_;
  const spec::Strategy& strategy_;
  int64_t data_rank_;
  int64_t context_rank_;
  at::Device device_;
};

}  // namespace ridgeline::train
