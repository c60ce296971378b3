// Which points need at least, or at most, the memory of another one for certain: equal in everything but
//   a larger micro-batch, less recomputation, a lower ZeRO stage, an uncut sequence,
// each of which keeps or adds bytes on every stage of every program. (A larger micro-batch leaves fewer of them in
// flight, but a stage holds min(stages, micro-batches) of them, and the product of the two grows.)
#pragma once

#include <functional>
#include <vector>

#include "search/tune/points.h"

namespace ridgeline::search {

class Dominance {
 public:
  explicit Dominance(const PointSet& points);

  // Each point that needs no less memory than `point`, without itself.
  void for_each_heavier(size_t point, const std::function<void(size_t)>& visit) const;
  // Each point that needs no more.
  void for_each_lighter(size_t point, const std::function<void(size_t)>& visit) const;

 private:
  struct Need {
    int64_t micro_batch, recompute, zero_stage, sequence_parallel;
  };
  static bool is_no_less(const Need& left, const Need& right);

  std::vector<Need> needs_;
  std::vector<size_t> group_of_;             // equal in everything else
  std::vector<std::vector<size_t>> groups_;  // their points
};

}  // namespace ridgeline::search
