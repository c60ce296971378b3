// Which token comes next: a choice from logits, keyed by counters (core/random.h), so that the same seed gives the same
// text and one text does not depend on how many others are written.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace ridgeline::train {

struct Sampling {
  double temperature = 0.8;  // divides the logits; 0: always the likeliest token
  int64_t top_k = 40;        // only the k likeliest; 0: all
  double top_p = 1.0;        // only the likeliest whose probabilities reach p (Holtzman et al., arXiv 1904.09751)
  uint64_t seed = 1;
};

// `logits`: [vocabulary], of any precision and device. `sample` numbers the text, `position` the token in it. Of equal
// logits the lower token counts as likelier. Throws Failure where a logit is not a number.
int64_t sample_token(const at::Tensor& logits, const Sampling& sampling, int64_t sample, int64_t position);

}  // namespace ridgeline::train
