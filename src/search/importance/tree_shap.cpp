#include "search/importance/tree_shap.h"

#include <algorithm>

namespace ridgeline::search {
namespace {

// One feature of the path from the root; the first one stands for none.
struct PathEntry {
  int32_t feature = -1;
  double zero = 1;    // share of the paths that go on where the feature is not known
  double one = 1;     // and where it is
  double weight = 1;  // of subsets with as many features as the entry's place
};
using Path = std::vector<PathEntry>;

void extend(Path& path, double zero, double one, int32_t feature) {
  const size_t length = path.size();
  path.push_back({feature, zero, one, length == 0 ? 1.0 : 0.0});
  const double count = static_cast<double>(length + 1);
  for (size_t i = length; i-- > 0;) {
    path[i + 1].weight += one * path[i].weight * static_cast<double>(i + 1) / count;
    path[i].weight *= zero * static_cast<double>(length - i) / count;
  }
}

// Weights as they were without entry `at`; calls `use` with each, last first.
template <typename Use>
void unwound(const Path& path, size_t at, Use use) {
  const size_t last = path.size() - 1;
  const double count = static_cast<double>(path.size()), zero = path[at].zero, one = path[at].one;
  double next = path[last].weight;
  for (size_t j = last; j-- > 0;) {
    double weight = 0;
    if (one != 0) {
      weight = next * count / (static_cast<double>(j + 1) * one);
      next = path[j].weight - weight * zero * static_cast<double>(last - j) / count;
    } else {
      weight = path[j].weight * count / (zero * static_cast<double>(last - j));
    }
    use(j, weight);
  }
}

Path without(const Path& path, size_t at) {
  Path result = path;
  unwound(path, at, [&](size_t j, double weight) { result[j].weight = weight; });
  for (size_t j = at; j + 1 < path.size(); ++j) {
    result[j].feature = path[j + 1].feature;
    result[j].zero = path[j + 1].zero;
    result[j].one = path[j + 1].one;
  }
  result.pop_back();
  return result;
}

class Walk {
 public:
  Walk(const Tree& tree, std::span<const double> row, std::vector<double>& values)
      : tree_(tree), row_(row), values_(values) {}

  void visit(int32_t at, Path path, double zero, double one, int32_t feature) {
    extend(path, zero, one, feature);
    const TreeNode& node = tree_[at];
    if (node.feature < 0) {
      for (size_t i = 1; i < path.size(); ++i) {
        double sum = 0;
        unwound(path, i, [&](size_t, double weight) { sum += weight; });
        values_[path[i].feature] += sum * (path[i].one - path[i].zero) * node.value;
      }
      return;
    }
    const bool goes_left = row_[node.feature] <= node.threshold;
    const int32_t hot = goes_left ? node.left : node.right, cold = goes_left ? node.right : node.left;
    double known_zero = 1, known_one = 1;
    const auto found = std::find_if(path.begin() + 1, path.end(),
                                    [&](const PathEntry& entry) { return entry.feature == node.feature; });
    if (found != path.end()) {
      known_zero = found->zero;
      known_one = found->one;
      path = without(path, static_cast<size_t>(found - path.begin()));
    }
    visit(hot, path, known_zero * tree_[hot].cover / node.cover, known_one, node.feature);
    visit(cold, path, known_zero * tree_[cold].cover / node.cover, 0, node.feature);
  }

 private:
  const Tree& tree_;
  std::span<const double> row_;
  std::vector<double>& values_;
};

double mean_of(const Tree& tree) {
  double sum = 0;
  for (const TreeNode& node : tree) {
    if (node.feature < 0) sum += node.value * node.cover;
  }
  return sum / tree.front().cover;
}

}  // namespace

std::vector<double> shap_values(const Forest& forest, std::span<const double> row) {
  std::vector<double> values(row.size(), 0);
  for (const Tree& tree : forest.trees()) Walk(tree, row, values).visit(0, {}, 1, 1, -1);
  for (double& value : values) value /= static_cast<double>(forest.trees().size());
  return values;
}

double shap_base(const Forest& forest) {
  double sum = 0;
  for (const Tree& tree : forest.trees()) sum += mean_of(tree);
  return sum / static_cast<double>(forest.trees().size());
}

}  // namespace ridgeline::search
