#include "search/importance/importance.h"

#include <algorithm>
#include <cmath>

#include "search/importance/functional_anova.h"
#include "search/importance/tree_shap.h"
#include "search/surrogate/forest.h"

namespace ridgeline::search {
namespace {

struct Data {
  std::vector<size_t> points;
  FeatureRows rows;
  std::vector<double> values;
};

Data data_of(const PointSet& points, const std::vector<Trial>& trials, Explained what, size_t objective) {
  Data data;
  for (const Trial& trial : trials) {
    const bool ran = trial.outcome == Outcome::ok || trial.outcome == Outcome::stopped_early;
    if (trial.outcome == Outcome::infrastructure) continue;
    if (what == Explained::cost && (!ran || trial.costs.size() <= objective)) continue;
    data.points.push_back(trial.point);
    data.rows.push_back(points.coordinates(trial.point));
    data.values.push_back(what == Explained::failure ? (ran ? 0.0 : 1.0) : std::log(trial.costs[objective]));
  }
  return data;
}

std::vector<double> partial_dependence(const Forest& forest, FeatureRows rows, size_t dimension,
                                       const std::vector<double>& levels) {
  std::vector<double> result;
  for (const double level : levels) {
    double sum = 0;
    for (auto& row : rows) {
      row[dimension] = level;
      sum += forest.predict(row);
    }
    result.push_back(sum / static_cast<double>(rows.size()));
  }
  return result;
}

std::vector<LevelEffect> effects(const PointSet& points, const Data& data, const Forest& forest, const Grid& grid,
                                 const FunctionalAnova& anova, size_t dimension) {
  const std::vector<double> dependence = partial_dependence(forest, data.rows, dimension, grid[dimension]);
  std::vector<LevelEffect> result;
  for (size_t level = 0; level < grid[dimension].size(); ++level) {
    LevelEffect effect{points.dimensions()[dimension].labels[level], dependence[level],
                       anova.marginal(dimension)[level]};
    for (const size_t point : data.points) effect.trials += points.level(point, dimension) == level;
    result.push_back(std::move(effect));
  }
  return result;
}

}  // namespace

Importance explain(const PointSet& points, const std::vector<Trial>& trials, Explained what, size_t objective,
                   uint64_t seed) {
  const Data data = data_of(points, trials, what, objective);
  const std::vector<Dimension>& dimensions = points.dimensions();
  Importance result;
  result.trials = data.rows.size();
  if (data.rows.size() < 2 || dimensions.empty()) return result;
  ForestOptions options;
  options.seed = seed;
  const Forest forest(data.rows, data.values, options);
  Grid grid(dimensions.size());
  for (size_t d = 0; d < dimensions.size(); ++d) {
    for (size_t level = 0; level < dimensions[d].values.size(); ++level) grid[d].push_back(points.coordinate(d, level));
  }
  const FunctionalAnova anova(forest, grid);
  result.base = shap_base(forest);
  result.explained = forest.explained();
  std::vector<double> magnitudes(dimensions.size(), 0);
  for (size_t i = 0; i < data.rows.size(); ++i) {
    result.rows.push_back({data.points[i], shap_values(forest, data.rows[i])});
    for (size_t d = 0; d < magnitudes.size(); ++d) {
      magnitudes[d] += std::abs(result.rows.back().shap[d]) / static_cast<double>(data.rows.size());
    }
  }
  for (size_t d = 0; d < dimensions.size(); ++d) {
    result.dimensions.push_back(
        {dimensions[d].name, magnitudes[d], anova.share(d), effects(points, data, forest, grid, anova, d)});
    for (size_t other = d + 1; other < dimensions.size(); ++other) {
      result.pairs.push_back({dimensions[d].name, dimensions[other].name, anova.pair_share(d, other)});
    }
  }
  std::stable_sort(result.dimensions.begin(), result.dimensions.end(),
                   [](const auto& a, const auto& b) { return a.shap > b.shap; });
  std::stable_sort(result.pairs.begin(), result.pairs.end(),
                   [](const auto& a, const auto& b) { return a.share > b.share; });
  return result;
}

}  // namespace ridgeline::search
