// Rotary positions (Su et al., arXiv 2104.09864): channel pairs of a head's query and key are turned by the angle
// position * frequency. Frequencies are a pure function of the keys; the tables of sines are nn's (nn/rotary.h).
//
// Channel i of the first half of a head is paired with channel i of the second half, as Hugging Face's weights are
// arranged. A scaling stretches positions so that a model reads further than it was first trained for:
//
//   linear   all frequencies divided by `factor`
//   llama3   low ones alone, with a smooth passage (Llama 3.1; arXiv 2407.21783)
//   yarn     low ones alone by the number of turns over the original sequence, and sines scaled (arXiv 2309.00071)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ridgeline::spec {

enum class RotaryScaling { none, linear, llama3, yarn };

struct RotarySpec {
  double base = 10000.0;  // frequency of pair i of n: base^(-i / n)
  RotaryScaling scaling = RotaryScaling::none;
  double factor = 1.0;            // by which the sequence is stretched
  int64_t original_sequence = 0;  // llama3, yarn: tokens that the model was first trained for
  double low_frequency = 1.0;     // llama3: turns over the original sequence below which a pair is stretched in full
  double high_frequency = 4.0;    // llama3: turns above which it is left alone
  double beta_fast = 32.0;        // yarn: turns above which a pair is left alone
  double beta_slow = 1.0;         // yarn: turns below which it is stretched in full
  double attention_factor = 0.0;  // yarn: of sines and cosines; 0: 0.1 ln(factor) + 1
};

// Radians per position of each of the head_size / 2 pairs.
std::vector<double> rotary_frequencies(const RotarySpec& rotary, int64_t head_size);

// What sines and cosines are multiplied by.
double rotary_attention_factor(const RotarySpec& rotary);

// Throws InputError that names the key, "model.rotary_...".
void validate(const RotarySpec& rotary);

std::string to_string(RotaryScaling scaling);

}  // namespace ridgeline::spec
