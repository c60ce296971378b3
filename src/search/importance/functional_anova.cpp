#include "search/importance/functional_anova.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace ridgeline::search {
namespace {

struct Range {
  size_t begin = 0, end = 0;  // of levels
};

struct Leaf {
  double value = 0;
  std::vector<Range> box;
};

void collect(const Tree& tree, int32_t at, const Grid& grid, std::vector<Range>& box, std::vector<Leaf>& leaves) {
  const TreeNode& node = tree[at];
  if (node.feature < 0) {
    leaves.push_back({node.value, box});
    return;
  }
  const std::vector<double>& levels = grid[node.feature];
  Range& range = box[node.feature];
  const Range whole = range;
  const size_t cut =
      static_cast<size_t>(std::upper_bound(levels.begin(), levels.end(), node.threshold) - levels.begin());
  range = {whole.begin, std::min(whole.end, cut)};
  if (range.begin < range.end) collect(tree, node.left, grid, box, leaves);
  range = {std::max(whole.begin, cut), whole.end};
  if (range.begin < range.end) collect(tree, node.right, grid, box, leaves);
  range = whole;
}

class TreeAnova {
 public:
  TreeAnova(const Tree& tree, const Grid& grid) : grid_(grid) {
    std::vector<Range> box;
    for (const auto& levels : grid) box.push_back({0, levels.size()});
    collect(tree, 0, grid, box, leaves_);
    double square = 0;
    for (const Leaf& leaf : leaves_) {
      double volume = 1;
      for (size_t d = 0; d < grid.size(); ++d) volume *= share(leaf, d);
      volumes_.push_back(volume);
      mean_ += volume * leaf.value;
    }
    for (size_t i = 0; i < leaves_.size(); ++i) square += volumes_[i] * std::pow(leaves_[i].value - mean_, 2);
    variance_ = square;
  }

  double mean() const { return mean_; }
  double variance() const { return variance_; }

  std::vector<double> marginal(size_t d) const {
    std::vector<double> result(grid_[d].size(), 0);
    for (size_t i = 0; i < leaves_.size(); ++i) {
      const double rest = leaves_[i].value * volumes_[i] / share(leaves_[i], d);
      for (size_t level = leaves_[i].box[d].begin; level < leaves_[i].box[d].end; ++level) result[level] += rest;
    }
    return result;
  }

  // [left, right]
  std::vector<double> marginal(size_t left, size_t right) const {
    const size_t width = grid_[right].size();
    std::vector<double> result(grid_[left].size() * width, 0);
    for (size_t i = 0; i < leaves_.size(); ++i) {
      const Leaf& leaf = leaves_[i];
      const double rest = leaf.value * volumes_[i] / share(leaf, left) / share(leaf, right);
      for (size_t a = leaf.box[left].begin; a < leaf.box[left].end; ++a) {
        for (size_t b = leaf.box[right].begin; b < leaf.box[right].end; ++b) result[a * width + b] += rest;
      }
    }
    return result;
  }

  double variance_of(const std::vector<double>& marginal) const {
    double sum = 0;
    for (const double value : marginal) sum += std::pow(value - mean_, 2);
    return sum / static_cast<double>(marginal.size());
  }

 private:
  double share(const Leaf& leaf, size_t d) const {
    return static_cast<double>(leaf.box[d].end - leaf.box[d].begin) / static_cast<double>(grid_[d].size());
  }

  const Grid& grid_;
  std::vector<Leaf> leaves_;
  std::vector<double> volumes_;
  double mean_ = 0, variance_ = 0;
};

}  // namespace

FunctionalAnova::FunctionalAnova(const Forest& forest, const Grid& grid) {
  const size_t count = grid.size();
  const double trees = static_cast<double>(forest.trees().size());
  shares_.assign(count, 0);
  pair_shares_.assign(count * count, 0);
  for (const auto& levels : grid) marginals_.emplace_back(levels.size(), 0.0);
  double varied = 0;
  for (const Tree& tree : forest.trees()) {
    const TreeAnova anova(tree, grid);
    mean_ += anova.mean() / trees;
    std::vector<double> alone;
    for (size_t d = 0; d < count; ++d) {
      const std::vector<double> marginal = anova.marginal(d);
      for (size_t level = 0; level < marginal.size(); ++level) marginals_[d][level] += marginal[level] / trees;
      alone.push_back(anova.variance_of(marginal));
    }
    if (!(anova.variance() > 0)) continue;
    ++varied;
    for (size_t left = 0; left < count; ++left) {
      shares_[left] += alone[left] / anova.variance();
      for (size_t right = left + 1; right < count; ++right) {
        const double both = anova.variance_of(anova.marginal(left, right));
        pair_shares_[left * count + right] += std::max(0.0, both - alone[left] - alone[right]) / anova.variance();
      }
    }
  }
  for (double& share : shares_) share /= std::max(varied, 1.0);
  for (double& share : pair_shares_) share /= std::max(varied, 1.0);
}

double FunctionalAnova::pair_share(size_t left, size_t right) const {
  RIDGELINE_ASSERT(left != right);
  return pair_shares_[std::min(left, right) * shares_.size() + std::max(left, right)];
}

}  // namespace ridgeline::search
