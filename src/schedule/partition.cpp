#include "schedule/partition.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"

namespace ridgeline::schedule {
namespace {

// Sums of the same work in another order may differ by rounding; they count as equal.
constexpr double rounding = 1e-12;

// Cuts a row of items into non-empty parts by dynamic programming over suffixes. The embedding and the head have been
// folded into the first and last layer, so items are layers.
class Cutter {
 public:
  Cutter(const std::vector<double>& work, int64_t parts)
      : items_(static_cast<int64_t>(work.size())), parts_(parts), sum_to_(items_ + 1, 0.0) {
    for (int64_t i = 0; i < items_; ++i) sum_to_[i + 1] = sum_to_[i] + work[i];
  }

  // Number of items in each part.
  std::vector<int64_t> cut() const {
    const double limit = least_fullest() * (1.0 + rounding);
    return most_even(limit);
  }

 private:
  double sum(int64_t begin, int64_t end) const { return sum_to_[end] - sum_to_[begin]; }

  // fullest[b] for k parts: the least work of the fullest of k parts of items b onwards.
  double least_fullest() const {
    std::vector<double> fullest(items_);
    for (int64_t begin = 0; begin < items_; ++begin) fullest[begin] = sum(begin, items_);
    for (int64_t parts = 2; parts <= parts_; ++parts) {
      for (int64_t begin = 0; begin + parts <= items_; ++begin) {
        // In place: fullest[end] for end > begin still belongs to parts - 1. The first part grows with its end while
        // the rest shrinks, so the best end is where they cross: the first end where the first part is the larger, or
        // the one before.
        int64_t low = begin + 1, high = items_ - (parts - 1);
        while (low < high) {
          const int64_t middle = low + (high - low) / 2;
          if (sum(begin, middle) >= fullest[middle]) {
            high = middle;
          } else {
            low = middle + 1;
          }
        }
        double best = std::max(sum(begin, low), fullest[low]);
        if (low > begin + 1) best = std::min(best, std::max(sum(begin, low - 1), fullest[low - 1]));
        fullest[begin] = best;
      }
    }
    return fullest[0];
  }

  // Least sum of squares of the parts' work with no part above the limit.
  std::vector<int64_t> most_even(double limit) const {
    const double impossible = std::numeric_limits<double>::infinity();
    std::vector<double> squares(items_ + 1, impossible);
    squares[items_] = 0.0;  // no items in no parts
    std::vector<std::vector<int64_t>> best_end(parts_ + 1, std::vector<int64_t>(items_, -1));
    for (int64_t parts = 1; parts <= parts_; ++parts) {
      std::vector<double> with_one_more(items_ + 1, impossible);
      for (int64_t begin = items_ - parts; begin >= 0; --begin) {
        for (int64_t end = begin + 1; end <= items_ && sum(begin, end) <= limit; ++end) {
          const double candidate = sum(begin, end) * sum(begin, end) + squares[end];
          if (candidate < with_one_more[begin] * (1.0 - rounding)) {
            with_one_more[begin] = candidate;
            best_end[parts][begin] = end;
          }
        }
      }
      squares = std::move(with_one_more);
    }
    std::vector<int64_t> counts;
    for (int64_t parts = parts_, begin = 0; parts > 0; --parts) {
      const int64_t end = best_end[parts][begin];
      RIDGELINE_ASSERT(end > begin);
      counts.push_back(end - begin);
      begin = end;
    }
    return counts;
  }

  int64_t items_;
  int64_t parts_;
  std::vector<double> sum_to_;
};

}  // namespace

std::vector<spec::Range> partition_units(const std::vector<double>& unit_work, int64_t stages) {
  const int64_t layers = static_cast<int64_t>(unit_work.size()) - 2;
  RIDGELINE_ASSERT(layers >= 1);
  for (const double work : unit_work) RIDGELINE_ASSERT(std::isfinite(work) && work >= 0.0);
  if (stages < 1 || stages > layers) {
    throw InputError(
        "strategy.pipeline = {}: a model of {} layers can be cut into 1 to {} stages, since each holds at least one "
        "layer",
        stages, layers, layers);
  }
  std::vector<double> layer_work(unit_work.begin() + 1, unit_work.end() - 1);
  layer_work.front() += unit_work.front();
  layer_work.back() += unit_work.back();
  return partition_explicit(Cutter(layer_work, stages).cut());
}

std::vector<spec::Range> partition_explicit(const std::vector<int64_t>& stage_layers) {
  if (stage_layers.empty()) throw InputError("strategy.stage_layers is empty: expected the layers of each stage");
  std::vector<spec::Range> ranges;
  int64_t begin = 0;  // the first stage begins with the embedding
  int64_t layers = 0;
  for (size_t stage = 0; stage < stage_layers.size(); ++stage) {
    if (stage_layers[stage] < 1) {
      throw InputError("strategy.stage_layers[{}] = {}: every stage holds at least one layer", stage,
                       stage_layers[stage]);
    }
    layers += stage_layers[stage];
    ranges.push_back({begin, layers + 1});
    begin = layers + 1;
  }
  ranges.back().end += 1;  // the head
  return ranges;
}

}  // namespace ridgeline::schedule
