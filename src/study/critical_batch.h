// How many tokens of a step are of use.
//
// McCandlish et al. 2018 (arXiv 1812.06162): with a batch of B tokens a loss that could be reached with E tokens takes
// E (1 + B / B_crit), so that a batch of B_crit costs twice the tokens, and one far beyond buys next to no speed.
// B_crit is near the gradient noise scale, which grows while the loss falls. Where nobody measured it for the model and
// data at hand, Kaplan et al. 2020 (arXiv 2001.08361, equations 1.4 and 1.1) serve as a rule for language models:
//   B_crit = 2e8 tokens / loss^(1 / 0.21),   loss at the end of a long training of N parameters = (8.8e13 / N)^0.076
// in nats a token of their data. It is a rule of thumb: later work (Zhang et al. 2024, arXiv 2410.21676) finds B_crit
// to follow the number of tokens seen rather than the model.
#pragma once

#include <string>

#include "spec/model.h"

namespace ridgeline::study {

struct CriticalBatch {
  double tokens = 0;         // of a step, late in training
  double early_tokens = 0;   // at a loss of 3 nats; 0: not known
  double loss = 0;           // that `tokens` is for; 0: not known
  bool is_measured = false;  // given by the user

  // Tokens that a batch costs, as a multiple of the least.
  double cost_of(double batch_tokens) const { return 1 + batch_tokens / tokens; }
};

// `measured`: tokens; 0: by the rule.
CriticalBatch critical_batch(const spec::ModelSpec& model, double measured);

}  // namespace ridgeline::study
