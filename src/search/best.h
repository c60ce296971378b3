// The best strategies of a space: memory first, then time.
//
// A strategy whose memory does not fit costs no time prediction. Those that fit are ranked by step time; strategies "at
// risk" (the allocator's worst slack would not fit) stand behind all that fit. Where nothing fits, `nearest` holds
// those that miss by least. The result does not depend on the number of threads.
#pragma once

#include <cstdint>
#include <vector>

#include "search/space.h"
#include "simulate/evaluator.h"

namespace ridgeline::search {

struct Miss {
  simulate::Prediction prediction;
  double missing_bytes = 0;
};

struct Ranking {
  std::vector<simulate::Prediction> best;  // at most `keep`, best first
  std::vector<Miss> nearest;               // where `best` is empty
  int64_t considered = 0;                  // legal strategies
  int64_t fitting = 0;
};

// `evaluator` is copied for each thread; 0 threads: one for each core.
Ranking rank(const simulate::Evaluator& evaluator, const Space& space, size_t keep, int threads = 0);

// Whether `train` can run a model of this family; it runs every strategy.
bool is_trainable(const spec::ModelSpec& model);

}  // namespace ridgeline::search
