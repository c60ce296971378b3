#include "spec/rotary.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"

namespace ridgeline::spec {
namespace {

constexpr double kTurn = 2.0 * std::numbers::pi;

// Turns of a pair over the original sequence.
double turns(const RotarySpec& rotary, double frequency) {
  return static_cast<double>(rotary.original_sequence) * frequency / kTurn;
}

double llama3_frequency(const RotarySpec& rotary, double frequency) {
  const double share =
      (turns(rotary, frequency) - rotary.low_frequency) / (rotary.high_frequency - rotary.low_frequency);
  const double kept = std::clamp(share, 0.0, 1.0);
  return (1.0 - kept) * frequency / rotary.factor + kept * frequency;
}

// Number, with fraction, of the pair that turns so often over the original sequence.
double pair_of_turns(const RotarySpec& rotary, int64_t head_size, double count) {
  const double ratio = static_cast<double>(rotary.original_sequence) / (count * kTurn);
  return static_cast<double>(head_size) * std::log(ratio) / (2.0 * std::log(rotary.base));
}

// Share of each frequency that is stretched, a ramp over whole pairs.
std::vector<double> yarn_stretched(const RotarySpec& rotary, int64_t head_size) {
  const double low = std::max(0.0, std::floor(pair_of_turns(rotary, head_size, rotary.beta_fast)));
  double high = std::min(static_cast<double>(head_size - 1),
                         std::ceil(pair_of_turns(rotary, head_size, rotary.beta_slow)));
  if (high == low) high += 0.001;
  std::vector<double> share(static_cast<size_t>(head_size / 2));
  for (size_t pair = 0; pair < share.size(); ++pair) {
    share[pair] = std::clamp((static_cast<double>(pair) - low) / (high - low), 0.0, 1.0);
  }
  return share;
}

void require(bool holds, const char* key, double found, const char* expected) {
  if (!holds) throw InputError("model.{} = {}: expected {}", key, found, expected);
}

}  // namespace

std::vector<double> rotary_frequencies(const RotarySpec& rotary, int64_t head_size) {
  std::vector<double> frequencies(static_cast<size_t>(head_size / 2));
  for (size_t pair = 0; pair < frequencies.size(); ++pair) {
    frequencies[pair] = std::pow(rotary.base, -2.0 * static_cast<double>(pair) / static_cast<double>(head_size));
  }
  switch (rotary.scaling) {
    case RotaryScaling::none:
      break;
    case RotaryScaling::linear:
      for (double& frequency : frequencies) frequency /= rotary.factor;
      break;
    case RotaryScaling::llama3:
      for (double& frequency : frequencies) frequency = llama3_frequency(rotary, frequency);
      break;
    case RotaryScaling::yarn: {
      const std::vector<double> stretched = yarn_stretched(rotary, head_size);
      for (size_t pair = 0; pair < frequencies.size(); ++pair) {
        frequencies[pair] *= stretched[pair] / rotary.factor + (1.0 - stretched[pair]);
      }
      break;
    }
  }
  return frequencies;
}

double rotary_attention_factor(const RotarySpec& rotary) {
  if (rotary.scaling != RotaryScaling::yarn) return 1.0;
  return rotary.attention_factor > 0 ? rotary.attention_factor : 0.1 * std::log(rotary.factor) + 1.0;
}

void validate(const RotarySpec& rotary) {
  require(rotary.base > 1 && rotary.base <= 1e15, "rotary_base", rotary.base, "above 1, at most 1e15");
  require(rotary.factor >= 1 && rotary.factor <= 1e6, "rotary_factor", rotary.factor, "1 to 1e6");
  require(rotary.attention_factor >= 0 && rotary.attention_factor <= 100, "rotary_attention_factor",
          rotary.attention_factor, "0 to 100");
  const bool needs_original = rotary.scaling == RotaryScaling::llama3 || rotary.scaling == RotaryScaling::yarn;
  if (needs_original && rotary.original_sequence < 1) {
    throw InputError("model.rotary_original_sequence = {}: model.rotary_scaling = '{}' needs the sequence that the "
                     "model was first trained for", rotary.original_sequence, to_string(rotary.scaling));
  }
  if (!(rotary.low_frequency > 0 && rotary.low_frequency < rotary.high_frequency)) {
    throw InputError("model.rotary_low_frequency = {}: expected above 0 and below model.rotary_high_frequency = {}",
                     rotary.low_frequency, rotary.high_frequency);
  }
  if (!(rotary.beta_slow > 0 && rotary.beta_slow < rotary.beta_fast)) {
    throw InputError("model.rotary_beta_slow = {}: expected above 0 and below model.rotary_beta_fast = {}",
                     rotary.beta_slow, rotary.beta_fast);
  }
}

std::string to_string(RotaryScaling scaling) {
  switch (scaling) {
    case RotaryScaling::none:
      return "none";
    case RotaryScaling::linear:
      return "linear";
    case RotaryScaling::llama3:
      return "llama3";
    case RotaryScaling::yarn:
      return "yarn";
  }
  throw InternalError("RotaryScaling {}", static_cast<int>(scaling));
}

}  // namespace ridgeline::spec
