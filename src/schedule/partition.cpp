#include "schedule/partition.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>

#include "core/error.h"

namespace ridgeline::schedule {
namespace {

// Sums of the same work in another order may differ by rounding; they count as equal.
constexpr double rounding = 1e-12;

// Of parts that the dynamic programme may look at: a tenth of a second or so.
constexpr int64_t kMostCandidates = 20'000'000;

// Layers of equal work: one after the other goes to the stage that has the least so far, the last of equals. That is
// the optimum of both aims at once, as for any separable convex cost. `first` and `last` are the embedding and the
// head, all work is counted in layers.
std::vector<int64_t> cut_equal(int64_t layers, int64_t stages, double first, double last) {
  struct Load {
    double work;
    int64_t stage;
    // The top of the queue is its greatest.
    bool operator<(const Load& other) const { return work != other.work ? work > other.work : stage < other.stage; }
  };
  std::vector<int64_t> counts(stages, 1);
  const auto load = [&](int64_t stage) {
    const double folded = (stage == 0 ? first : 0.0) + (stage == stages - 1 ? last : 0.0);
    constexpr double grid = 1e9;  // sums that differ by rounding alone shall be equal
    return Load{std::nearbyint((folded + static_cast<double>(counts[stage])) * grid), stage};
  };
  std::priority_queue<Load> least;
  for (int64_t stage = 0; stage < stages; ++stage) least.push(load(stage));
  for (int64_t left = layers - stages; left > 0; --left) {
    const int64_t stage = least.top().stage;
    least.pop();
    ++counts[stage];
    least.push(load(stage));
  }
  return counts;
}

// Cuts a row of items of any work into non-empty parts. The embedding and the head have been folded into the first and
// last layer, so items are layers.
class Cutter {
 public:
  Cutter(const std::vector<double>& work, int64_t parts)
      : items_(static_cast<int64_t>(work.size())), parts_(parts), sum_to_(items_ + 1, 0.0) {
    for (int64_t i = 0; i < items_; ++i) {
      sum_to_[i + 1] = sum_to_[i] + work[i];
      largest_ = std::max(largest_, sum(i, i + 1));  // as the sums see it: no limit may fall below one item
    }
  }

  // Number of items in each part.
  std::vector<int64_t> cut() const {
    const double limit = least_fullest() * (1.0 + rounding);
    return candidates(limit) <= kMostCandidates ? most_even(limit) : fill_from_last(limit);
  }

 private:
  double sum(int64_t begin, int64_t end) const { return sum_to_[end] - sum_to_[begin]; }

  // How many (number of parts, part) pairs most_even looks at; that it keeps fewer of them bounds its memory too.
  int64_t candidates(double limit) const {
    int64_t pairs = 0;
    for (int64_t end = items_; end > 0 && pairs <= kMostCandidates / parts_; --end) pairs += end - longest(end, limit);
    return pairs > kMostCandidates / parts_ ? kMostCandidates + 1 : pairs * parts_;
  }

  // Begin of the longest part that ends at `end` and keeps the limit; one item is always allowed.
  int64_t longest(int64_t end, double limit) const {
    const auto keeps = [&](double before) { return sum_to_[end] - before <= limit; };
    const auto first = std::partition_point(sum_to_.begin(), sum_to_.begin() + end, std::not_fn(keeps));
    return std::min<int64_t>(first - sum_to_.begin(), end - 1);
  }

  // Can the items be cut in at most as many parts (then also in exactly so many, since a part can be cut again)?
  bool fits(double limit) const {
    int64_t end = items_;
    for (int64_t parts = 0; parts < parts_ && end > 0; ++parts) end = longest(end, limit);
    return end == 0;
  }

  // The least work of the fullest part, to rounding from above.
  double least_fullest() const {
    double low = std::max(largest_, sum(0, items_) / static_cast<double>(parts_) * (1.0 - rounding));
    double high = sum(0, items_);
    while (high - low > 0.1 * rounding * high) {
      const double middle = low + (high - low) / 2;
      if (middle <= low || middle >= high) break;
      (fits(middle) ? high : low) = middle;
    }
    return high;
  }

  std::vector<int64_t> fill_from_last(double limit) const {
    std::vector<int64_t> counts(parts_);
    int64_t end = items_;
    for (int64_t part = parts_ - 1; part >= 0; --part) {
      const int64_t begin = part > 0 ? std::max(longest(end, limit), part) : 0;  // each part before needs an item
      counts[part] = end - begin;
      end = begin;
    }
    return counts;
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
  double largest_ = 0.0;
};

bool all_equal(const std::vector<double>& unit_work) {
  const auto [least, most] = std::minmax_element(unit_work.begin() + 1, unit_work.end() - 1);
  return *most - *least <= rounding * *most;
}

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
  const double layer = unit_work[1];
  if (layer > 0.0 && all_equal(unit_work)) {
    return partition_explicit(cut_equal(layers, stages, unit_work.front() / layer, unit_work.back() / layer));
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
