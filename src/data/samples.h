// SampleSource: which tokens are in which sample. A pure function of the token files, the seed and a sample's number:
// there is no state to save, and nothing depends on the number of ranks.
//
//   SampleSource source(spec.data, spec.model.sequence, spec.model.vocabulary, spec.training.seed);
//   source.training_sample(global_sample(step, global_batch, m, d, data, b, i), tokens, targets);
//
// Samples are windows of sequence + 1 tokens at a stride of `sequence` in the documents laid end to end: its first
// `sequence` tokens are the input, the last `sequence` the targets. Training uses the windows of the first part of the
// file, validation those of the held-out end (or of a file of its own); no window reaches across the cut, so the two
// share no token. A training sample's number n counts from the start of the run: epoch n / training_samples(), and
// within the epoch the window that a permutation keyed by (seed, epoch) puts there. Validation samples are read in
// order.
//
// Immutable after construction: any number of threads may read.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "data/token_file.h"
#include "spec/train.h"

namespace ridgeline::data {

class SampleSource {
 public:
  // InputError where a file is not good, validation_fraction is not in [0, 1), or the training part is shorter than one
  // window (with the counts, and what would be needed).
  SampleSource(const spec::DataSpec& data, int64_t sequence, int64_t vocabulary, uint64_t seed);

  int64_t training_samples() const { return training_samples_; }  // of one epoch
  int64_t validation_samples() const { return validation_samples_; }
  int64_t sequence() const { return sequence_; }

  // Throws InputError where the held-out part has fewer than `samples` samples; call it before the first step.
  void require_validation(int64_t samples) const;

  // `tokens` and `targets` have `sequence` elements each. A token id outside the vocabulary is an InputError that names
  // document and position.
  void training_sample(int64_t number, std::span<int64_t> tokens, std::span<int64_t> targets) const;
  void validation_sample(int64_t index, std::span<int64_t> tokens, std::span<int64_t> targets) const;

  // Whether the places of tokens in their documents matter (data.separate_documents).
  bool separates_documents() const { return data_.separate_documents; }
  // Places of the sample's tokens in their documents, as far as the sample shows these: 0 for its first token and for
  // the first of each document, one more for each that follows.
  void training_positions(int64_t number, std::span<int64_t> positions) const;
  void validation_positions(int64_t index, std::span<int64_t> positions) const;

  int64_t epoch(int64_t number) const { return number / training_samples_; }
  // First token of the window of training sample `number`.
  int64_t training_window(int64_t number) const;

 private:
  void read_window(const TokenFile& file, int64_t begin, std::span<int64_t> tokens, std::span<int64_t> targets) const;
  void find_positions(const TokenFile& file, int64_t begin, std::span<int64_t> positions) const;
  const TokenFile& validation_file() const { return separate_ ? *separate_ : file_; }

  TokenFile file_;
  std::optional<TokenFile> separate_;
  spec::DataSpec data_;
  int64_t sequence_;
  int64_t vocabulary_;
  uint64_t seed_;
  spec::Range training_;  // tokens of each part; windows tile them but for a rest shorter than a window
  spec::Range validation_;
  int64_t training_samples_ = 0;
  int64_t validation_samples_ = 0;
};

// The number of the training sample that stands at position `i` of micro-batch `micro_batch_index` of replica
// `data_rank` in step `step` (from 0):
//
//   step * global_batch + (micro_batch_index * data_size + data_rank) * micro_batch_size + i
//
// Over all micro-batches, replicas and positions these are exactly step * global_batch ... (step + 1) * global_batch -
// 1, each once, for every data_size and micro_batch_size whose product divides global_batch. A layout therefore changes
// where a sample is worked on, and never which samples a step sees.
int64_t global_sample(int64_t step, int64_t global_batch, int64_t micro_batch_index, int64_t data_rank,
                      int64_t data_size, int64_t micro_batch_size, int64_t i);

}  // namespace ridgeline::data
