// A random forest for regression (Breiman 2001), kept as plain nodes so that it can be explained exactly: SHAP values
// and variance decomposition (search/importance/) read its trees.
//
// Each tree is grown on a bootstrap sample; a node is split where the sum of squares falls most, over a random share of
// the features. A function of its arguments: the same data and seed give the same forest.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ridgeline::search {

struct TreeNode {
  int32_t feature = -1;  // below 0: a leaf
  double threshold = 0;  // x[feature] <= threshold goes left
  int32_t left = -1, right = -1;
  double value = 0;  // mean of the samples that came here
  double cover = 0;  // how many of them
};

// The root is the first node; children come after their parent.
using Tree = std::vector<TreeNode>;

struct ForestOptions {
  size_t trees = 100;
  size_t least_leaf = 2;           // samples of a leaf
  double feature_share = 2 / 3.0;  // looked at in a split
  uint64_t seed = 0;
};

// Rows of equal length.
using FeatureRows = std::vector<std::vector<double>>;

class Forest {
 public:
  // Needs a row or more.
  Forest(const FeatureRows& rows, std::span<const double> values, const ForestOptions& options);
  explicit Forest(std::vector<Tree> trees) : trees_(std::move(trees)) {}

  double predict(std::span<const double> row) const;
  const std::vector<Tree>& trees() const { return trees_; }
  // 1 - sum of squares left / around the mean, each row predicted by trees that did not see it: how much the forest
  // explains. Below zero: nothing.
  double explained() const { return explained_; }

 private:
  std::vector<Tree> trees_;
  double explained_ = 0;
};

double predict(const Tree& tree, std::span<const double> row);

}  // namespace ridgeline::search
