// Forests, their SHAP values and variance shares against the definitions, computed by brute force.
#include "search/importance/importance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "search/importance/functional_anova.h"
#include "search/importance/tree_shap.h"
#include "search/surrogate/forest.h"
#include "search/tune/pareto.h"
#include "search/tune/space_description.h"

namespace ridgeline::search {
namespace {

constexpr size_t kFeatures = 4;

double truth(const std::vector<double>& x) { return 2 * x[0] + x[1] * x[2] - (x[0] > 1 ? x[3] : 0); }

Grid grid() { return {{0, 1, 2}, {0, 1}, {0, 1, 2, 3}, {0, 1, 2}}; }

FeatureRows all_rows() {
  FeatureRows rows;
  const Grid levels = grid();
  for (const double a : levels[0])
    for (const double b : levels[1])
      for (const double c : levels[2])
        for (const double d : levels[3]) rows.push_back({a, b, c, d});
  return rows;
}

Forest grown(size_t trees) {
  std::mt19937 generator(3);
  FeatureRows rows;
  std::vector<double> values;
  const FeatureRows all = all_rows();
  for (int i = 0; i < 60; ++i) {
    rows.push_back(all[generator() % all.size()]);
    values.push_back(truth(rows.back()) + 0.01 * static_cast<double>(generator() % 100));
  }
  ForestOptions options;
  options.trees = trees;
  options.seed = 5;
  return Forest(rows, values, options);
}

// A tree's mean where only the features in `known` are.
double conditional(const Tree& tree, int32_t at, const std::vector<double>& row, unsigned known) {
  const TreeNode& node = tree[at];
  if (node.feature < 0) return node.value;
  if (known >> node.feature & 1) {
    return conditional(tree, row[node.feature] <= node.threshold ? node.left : node.right, row, known);
  }
  return (tree[node.left].cover * conditional(tree, node.left, row, known) +
          tree[node.right].cover * conditional(tree, node.right, row, known)) /
         node.cover;
}

double factorial(int number) { return number <= 1 ? 1 : number * factorial(number - 1); }

TEST(TreeShap, IsShapleysValue) {
  const Forest forest = grown(8);
  for (const auto& row : all_rows()) {
    const std::vector<double> found = shap_values(forest, row);
    double sum = shap_base(forest);
    for (size_t feature = 0; feature < kFeatures; ++feature) {
      double expected = 0;
      for (unsigned set = 0; set < 1u << kFeatures; ++set) {
        if (set >> feature & 1) continue;
        const int size = __builtin_popcount(set);
        const double weight =
            factorial(size) * factorial(static_cast<int>(kFeatures) - size - 1) / factorial(kFeatures);
        for (const Tree& tree : forest.trees()) {
          const double gain = conditional(tree, 0, row, set | 1u << feature) - conditional(tree, 0, row, set);
          expected += weight * gain / static_cast<double>(forest.trees().size());
        }
      }
      EXPECT_NEAR(found[feature], expected, 1e-10);
      sum += found[feature];
    }
    EXPECT_NEAR(sum, forest.predict(row), 1e-10);
  }
}

// Share of the variance of a tree's mean over all features outside `kept`.
double brute_variance(const Tree& tree, unsigned kept) {
  const FeatureRows rows = all_rows();
  double mean = 0, result = 0;
  for (const auto& row : rows) mean += predict(tree, row) / static_cast<double>(rows.size());
  for (const auto& row : rows) {
    double sum = 0, count = 0;
    for (const auto& other : rows) {
      bool alike = true;
      for (size_t d = 0; d < kFeatures; ++d) alike = alike && (!(kept >> d & 1) || other[d] == row[d]);
      if (!alike) continue;
      sum += predict(tree, other);
      count += 1;
    }
    result += std::pow(sum / count - mean, 2) / static_cast<double>(rows.size());
  }
  return result;
}

TEST(FunctionalAnova, IsTheDecompositionOverTheGrid) {
  const Forest forest = grown(5);
  const FunctionalAnova anova(forest, grid());
  const double trees = static_cast<double>(forest.trees().size());
  for (size_t left = 0; left < kFeatures; ++left) {
    double alone = 0;
    for (const Tree& tree : forest.trees())
      alone += brute_variance(tree, 1u << left) / brute_variance(tree, 15) / trees;
    EXPECT_NEAR(anova.share(left), alone, 1e-10);
    for (size_t right = left + 1; right < kFeatures; ++right) {
      double both = 0;
      for (const Tree& tree : forest.trees()) {
        both += (brute_variance(tree, 1u << left | 1u << right) - brute_variance(tree, 1u << left) -
                 brute_variance(tree, 1u << right)) /
                brute_variance(tree, 15) / trees;
      }
      EXPECT_NEAR(anova.pair_share(right, left), both, 1e-10);
    }
  }
  double marginal = 0, count = 0;
  for (const auto& row : all_rows()) {
    if (row[2] != 3) continue;
    marginal += forest.predict(row);
    count += 1;
  }
  EXPECT_NEAR(anova.marginal(2)[3], marginal / count, 1e-10);
}

TEST(Forest, LearnsAndSaysHowWell) {
  const Forest forest = grown(60);
  EXPECT_GT(forest.explained(), 0.7);
  double worst = 0;
  for (const auto& row : all_rows()) worst = std::max(worst, std::abs(forest.predict(row) - truth(row) - 0.5));
  EXPECT_LT(worst, 2.0);
  EXPECT_EQ(forest.predict(all_rows()[7]), grown(60).predict(all_rows()[7]));
  const std::vector<double> constant = {2, 2, 2};
  const Forest flat({{0}, {1}, {2}}, constant, {});
  EXPECT_EQ(flat.trees()[0].size(), 1u);
  EXPECT_EQ(flat.predict(std::vector<double>{5}), 2);
}

TEST(Importance, RanksWhatMakesTheCostAndWhatMakesItFail) {
  const PointSet points = enumerate({}, spec::model_preset("gpt-22b"), {.devices = 32, .global_batch = 64});
  std::vector<Trial> trials;
  std::mt19937 generator(1);
  for (int i = 0; i < 150; ++i) {
    const size_t point = generator() % points.size();
    const spec::Strategy& strategy = points.at(point).strategy;
    if (strategy.micro_batch >= 8) {
      trials.push_back({point, Outcome::crashed});
    } else {
      trials.push_back({point,
                        Outcome::ok,
                        {std::pow(static_cast<double>(strategy.tensor), 0.5) *
                         (1 + 0.01 * static_cast<double>(strategy.pipeline))}});
    }
  }
  const Importance cost = explain(points, trials, Explained::cost);
  EXPECT_EQ(cost.dimensions[0].name, "tensor");
  EXPECT_GT(cost.dimensions[0].share, 0.6);
  EXPECT_GT(cost.explained, 0.8);
  const auto& levels = cost.dimensions[0].levels;
  EXPECT_LT(levels.front().partial_dependence, levels.back().partial_dependence);
  EXPECT_LT(levels.front().main_effect, levels.back().main_effect);
  EXPECT_EQ(explain(points, trials, Explained::failure).dimensions[0].name, "micro_batch");
  EXPECT_TRUE(explain(points, {}, Explained::cost).dimensions.empty());
}

TEST(ParetoFront, HoldsWhatNothingBeats) {
  const auto trial = [](double a, double b) { return Trial{0, Outcome::ok, {a, b}}; };
  const std::vector<Trial> trials = {
      trial(3, 1), trial(2, 2), trial(3, 3), trial(1, 4), trial(2, 2), trial(1, 5), {0, Outcome::out_of_memory}};
  EXPECT_EQ(pareto_front(trials), (std::vector<size_t>{3, 1, 0}));
}

}  // namespace
}  // namespace ridgeline::search
