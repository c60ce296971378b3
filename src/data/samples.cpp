#include "data/samples.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "data/permutation.h"

namespace ridgeline::data {
namespace {

int64_t windows(spec::Range range, int64_t sequence) { return std::max<int64_t>(0, (range.size() - 1) / sequence); }

// With floor(fraction * tokens) tokens held out, this many or more leave a window for training.
int64_t tokens_needed(int64_t sequence, double fraction) {
  return static_cast<int64_t>(std::ceil(static_cast<double>(sequence + 1) / (1.0 - fraction)));
}

}  // namespace

SampleSource::SampleSource(const spec::DataSpec& data, int64_t sequence, int64_t vocabulary, uint64_t seed)
    : file_(data.path), data_(data), sequence_(sequence), vocabulary_(vocabulary), seed_(seed) {
  RIDGELINE_ASSERT(sequence >= 1 && vocabulary >= 1);
  const auto total = file_.tokens();
  if (!data.validation_path.empty()) {
    separate_.emplace(data.validation_path);
    training_ = {0, total};
    validation_ = {0, separate_->tokens()};
  } else {
    const auto fraction = data.validation_fraction;
    if (!(fraction >= 0.0 && fraction < 1.0)) {
      throw InputError("data.validation_fraction = {}; expected 0 or more and less than 1", fraction);
    }
    const auto cut = total - static_cast<int64_t>(static_cast<double>(total) * fraction);
    training_ = {0, cut};
    validation_ = {cut, total};
  }
  training_samples_ = windows(training_, sequence);
  validation_samples_ = windows(validation_, sequence);
  if (training_samples_ < 1) {
    const auto needed = tokens_needed(sequence, separate_ ? 0.0 : data.validation_fraction);
    throw InputError(
        "{}: {} tokens, {} of them for training; a sample of model.sequence = {} takes {}. Expected {} tokens or more: "
        "use a longer corpus, a smaller model.sequence or a smaller data.validation_fraction.",
        data.path, total, training_.size(), sequence, sequence + 1, needed);
  }
}

void SampleSource::require_validation(int64_t samples) const {
  if (samples <= validation_samples_) return;
  const auto needed = samples * sequence_ + 1;
  if (separate_) {
    throw InputError(
        "evaluation.samples = {}: {} has {} tokens, {} samples of model.sequence = {}; expected {} tokens or more, or "
        "evaluation.samples of {} at most",
        samples, separate_->prefix(), validation_.size(), validation_samples_, sequence_, needed, validation_samples_);
  }
  throw InputError(
      "evaluation.samples = {}: data.validation_fraction = {} holds out {} of the {} tokens of {}, {} samples of "
      "model.sequence = {}; expected {} tokens or more. Use a larger fraction, evaluation.samples of {} at most, or "
      "name "
      "a data.validation_path.",
      samples, data_.validation_fraction, validation_.size(), file_.tokens(), file_.prefix(), validation_samples_,
      sequence_, needed, validation_samples_);
}

int64_t SampleSource::training_window(int64_t number) const {
  RIDGELINE_ASSERT(number >= 0);
  const Permutation order(training_samples_, seed_, static_cast<uint64_t>(epoch(number)));
  return training_.begin + order(number % training_samples_) * sequence_;
}

void SampleSource::training_sample(int64_t number, std::span<int64_t> tokens, std::span<int64_t> targets) const {
  read_window(file_, training_window(number), tokens, targets);
}

void SampleSource::validation_sample(int64_t index, std::span<int64_t> tokens, std::span<int64_t> targets) const {
  RIDGELINE_ASSERT(index >= 0 && index < validation_samples_);
  read_window(validation_file(), validation_.begin + index * sequence_, tokens, targets);
}

void SampleSource::read_window(const TokenFile& file, int64_t begin, std::span<int64_t> tokens,
                               std::span<int64_t> targets) const {
  RIDGELINE_ASSERT(static_cast<int64_t>(tokens.size()) == sequence_ && tokens.size() == targets.size());
  file.read(begin, tokens);
  std::copy(tokens.begin() + 1, tokens.end(), targets.begin());
  file.read(begin + sequence_, targets.last(1));
  const auto inside = [this](int64_t token) { return token >= 0 && token < vocabulary_; };
  if (!std::all_of(tokens.begin(), tokens.end(), inside) || !inside(targets.back())) {
    file.check_vocabulary(vocabulary_, {begin, begin + sequence_ + 1});
  }
}

void SampleSource::training_positions(int64_t number, std::span<int64_t> positions) const {
  find_positions(file_, training_window(number), positions);
}

void SampleSource::validation_positions(int64_t index, std::span<int64_t> positions) const {
  RIDGELINE_ASSERT(index >= 0 && index < validation_samples_);
  find_positions(validation_file(), validation_.begin + index * sequence_, positions);
}

void SampleSource::find_positions(const TokenFile& file, int64_t begin, std::span<int64_t> positions) const {
  RIDGELINE_ASSERT(static_cast<int64_t>(positions.size()) == sequence_);
  int64_t first = begin, end = file.document(file.document_of(begin)).end;
  for (int64_t token = begin; token < begin + sequence_; ++token) {
    if (token == end) {
      first = token;
      end = file.document(file.document_of(token)).end;
    }
    positions[token - begin] = token - first;
  }
}

int64_t global_sample(int64_t step, int64_t global_batch, int64_t micro_batch_index, int64_t data_rank,
                      int64_t data_size, int64_t micro_batch_size, int64_t i) {
  return step * global_batch + (micro_batch_index * data_size + data_rank) * micro_batch_size + i;
}

}  // namespace ridgeline::data
