#include "search/surrogate/forest.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "core/random.h"

namespace ridgeline::search {
namespace {

class Draws {
 public:
  Draws(uint64_t seed, size_t tree) : key_(random_key(seed, "forest")), tree_(static_cast<uint32_t>(tree)) {}

  size_t below(size_t bound) {
    const PhiloxBlock block = philox4x32({count_++, tree_, 0, 0}, key_);
    return static_cast<size_t>((static_cast<uint64_t>(block[0]) * bound) >> 32);
  }

 private:
  uint64_t key_;
  uint32_t tree_, count_ = 0;
};

struct Split {
  double gain = 0;  // of the sum of squares
  size_t feature = 0;
  double threshold = 0;
};

class Grower {
 public:
  Grower(const FeatureRows& rows, std::span<const double> values, const ForestOptions& options, Draws& draws)
      : rows_(rows), values_(values), options_(options), draws_(draws) {
    features_.resize(rows.front().size());
    std::iota(features_.begin(), features_.end(), size_t{0});
  }

  Tree grow(std::vector<size_t> sample) {
    grow_node(sample, 0, sample.size());
    return std::move(tree_);
  }

 private:
  int32_t grow_node(std::vector<size_t>& sample, size_t begin, size_t end) {
    const int32_t at = static_cast<int32_t>(tree_.size());
    TreeNode& node = tree_.emplace_back();
    node.cover = static_cast<double>(end - begin);
    for (size_t i = begin; i < end; ++i) node.value += values_[sample[i]] / node.cover;
    const Split split = best_split(sample, begin, end);
    if (!(split.gain > 0)) return at;
    const auto first = sample.begin() + static_cast<ptrdiff_t>(begin),
               last = sample.begin() + static_cast<ptrdiff_t>(end);
    const auto middle =
        std::stable_partition(first, last, [&](size_t row) { return rows_[row][split.feature] <= split.threshold; });
    const size_t cut = static_cast<size_t>(middle - sample.begin());
    tree_[at].feature = static_cast<int32_t>(split.feature);
    tree_[at].threshold = split.threshold;
    const int32_t left = grow_node(sample, begin, cut);
    const int32_t right = grow_node(sample, cut, end);
    tree_[at].left = left;
    tree_[at].right = right;
    return at;
  }

  Split best_split(const std::vector<size_t>& sample, size_t begin, size_t end) {
    Split best;
    if (end - begin < 2 * options_.least_leaf) return best;
    const double share = options_.feature_share * static_cast<double>(features_.size());
    const size_t wanted = std::max<size_t>(1, static_cast<size_t>(std::ceil(share - 1e-9)));
    // Features without a split do not count, so that a node is a leaf only where no feature splits it.
    size_t tried = 0;
    for (size_t i = 0; i < features_.size() && tried < wanted; ++i) {
      std::swap(features_[i], features_[i + draws_.below(features_.size() - i)]);
      if (try_feature(sample, begin, end, features_[i], best)) ++tried;
    }
    return best;
  }

  bool try_feature(const std::vector<size_t>& sample, size_t begin, size_t end, size_t feature, Split& best) const {
    std::vector<std::pair<double, double>> sorted;
    double total = 0;
    for (size_t i = begin; i < end; ++i) {
      sorted.emplace_back(rows_[sample[i]][feature], values_[sample[i]]);
      total += sorted.back().second;
    }
    std::sort(sorted.begin(), sorted.end());
    if (sorted.front().first == sorted.back().first) return false;
    const double count = static_cast<double>(sorted.size()), mean = total / count;
    double left = 0;  // around the mean, which keeps digits
    for (size_t i = 1; i < sorted.size(); ++i) {
      left += sorted[i - 1].second - mean;
      if (sorted[i].first == sorted[i - 1].first) continue;
      if (i < options_.least_leaf || sorted.size() - i < options_.least_leaf) continue;
      const double below = static_cast<double>(i);
      const double gain = left * left * (1 / below + 1 / (count - below));
      if (gain <= best.gain * (1 + 1e-12) || gain <= 1e-14) continue;
      best = {gain, feature, (sorted[i - 1].first + sorted[i].first) / 2};
    }
    return true;
  }

  const FeatureRows& rows_;
  std::span<const double> values_;
  const ForestOptions& options_;
  Draws& draws_;
  std::vector<size_t> features_;
  Tree tree_;
};

}  // namespace

double predict(const Tree& tree, std::span<const double> row) {
  size_t at = 0;
  while (tree[at].feature >= 0) at = row[tree[at].feature] <= tree[at].threshold ? tree[at].left : tree[at].right;
  return tree[at].value;
}

Forest::Forest(const FeatureRows& rows, std::span<const double> values, const ForestOptions& options) {
  RIDGELINE_ASSERT(!rows.empty() && rows.size() == values.size() && options.trees > 0 && options.least_leaf > 0);
  std::vector<double> unseen_sum(rows.size(), 0), unseen_count(rows.size(), 0);
  for (size_t t = 0; t < options.trees; ++t) {
    Draws draws(options.seed, t);
    std::vector<size_t> sample(rows.size());
    std::vector<bool> seen(rows.size(), false);
    for (size_t& row : sample) {
      row = draws.below(rows.size());
      seen[row] = true;
    }
    trees_.push_back(Grower(rows, values, options, draws).grow(std::move(sample)));
    for (size_t row = 0; row < rows.size(); ++row) {
      if (seen[row]) continue;
      unseen_sum[row] += search::predict(trees_.back(), rows[row]);
      unseen_count[row] += 1;
    }
  }
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  double left = 0, around = 0;
  for (size_t row = 0; row < rows.size(); ++row) {
    if (unseen_count[row] == 0) continue;
    left += std::pow(values[row] - unseen_sum[row] / unseen_count[row], 2);
    around += std::pow(values[row] - mean, 2);
  }
  explained_ = around > 0 ? 1 - left / around : 0;
}

double Forest::predict(std::span<const double> row) const {
  double sum = 0;
  for (const Tree& tree : trees_) sum += search::predict(tree, row);
  return sum / static_cast<double>(trees_.size());
}

}  // namespace ridgeline::search
