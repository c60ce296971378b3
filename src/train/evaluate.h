// `ridgeline evaluate` as one rank runs it: the loss of a checkpoint on held-out text, by the trainer's own code.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "launch/environment.h"
#include "spec/train.h"

namespace ridgeline::train {

struct Evaluation {
  double loss = 0.0;        // mean over tokens, natural logarithm
  double perplexity = 0.0;  // e^loss
  // Of text, whose bytes the tokens are; the ends of documents cost bits and are no bytes. None where tokens are not
  // bytes.
  std::optional<double> bits_per_byte;
  int64_t samples = 0;
  int64_t tokens = 0;
};

// Over the first `samples` held-out samples of spec.data, 0 for all. `spec.strategy` must have been derived for the
// ranks of `environment`. The same on all ranks; an error of this rank is told to all others before the process ends.
Evaluation evaluate_command(const spec::TrainSpec& spec, const std::filesystem::path& checkpoint, int64_t samples,
                            const launch::RankEnvironment& environment);

}  // namespace ridgeline::train
