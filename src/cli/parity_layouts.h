// What `ridgeline parity` is asked to run: layouts in the words of strategy keys,
//
//   "tensor=2,pipeline=2; data=4,zero_stage=3"
//
// each over the strategy of the config. `data` is no key of a config; here it says how many ranks a layout gets.
#pragma once

#include <string>
#include <vector>

namespace ridgeline::cli {

struct ParityLayout {
  std::string text;                // as given, without spaces
  std::vector<std::string> sets;   // "strategy.tensor=2"
  int ranks = 1;
};

// Throws InputError, naming layout and key, for words that are no strategy key or that would change what is computed, and
// for layouts that do not fit the model. `config` and `sets` as for `train`.
std::vector<ParityLayout> parse_parity_layouts(const std::string& text, const std::string& config,
                                               const std::vector<std::string>& sets);

// The largest relative differences that rounding explains, by precision.compute.
struct ParityBounds {
  double loss = 0;
  double gradient_norm = 0;
};
ParityBounds parity_bounds(const std::string& precision);

// Losses and gradient norms of one run, a step each, from its metrics.jsonl.
struct ParityRun {
  std::vector<double> losses, gradient_norms;
};
ParityRun read_parity_run(const std::string& metrics_file, int64_t steps);

struct ParityDifference {
  double loss = 0;           // the largest relative one
  double gradient_norm = 0;
  int64_t step = 0;          // from 1: where the larger share of its bound is reached
  bool within = true;
};
ParityDifference compare(const ParityRun& run, const ParityRun& reference, const ParityBounds& bounds);

}  // namespace ridgeline::cli
