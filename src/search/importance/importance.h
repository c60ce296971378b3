// What a study's trials say of its dimensions: how much each one matters, alone and with another, and in which
// direction.
//
// A forest is grown on log(cost) of the trials that ran (or on 1 for a failure and 0 for a run). From it: SHAP values
// of each trial, whose mean magnitude ranks the dimensions; shares of variance over the whole grid (functional ANOVA);
// partial dependence, the forest's mean over the trials with one dimension set to each of its values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "search/tune/points.h"
#include "search/tune/trial.h"

namespace ridgeline::search {

struct LevelEffect {
  std::string label;
  double partial_dependence = 0;  // log(cost), or probability of failure
  double main_effect = 0;         // the same over the whole grid
  size_t trials = 0;              // that had this value
};

struct DimensionImportance {
  std::string name;
  double shap = 0;   // mean magnitude of the trials' SHAP values
  double share = 0;  // of the variance, alone
  std::vector<LevelEffect> levels;
};

struct PairImportance {
  std::string left, right;
  double share = 0;  // of the variance, together beyond each alone
};

struct Importance {
  std::vector<DimensionImportance> dimensions;  // the most important first
  std::vector<PairImportance> pairs;            // the same
  size_t trials = 0;
  double base = 0;       // what SHAP values start from
  double explained = 0;  // share of the variance that the forest foretells; near or below 0: believe nothing
  struct Row {
    size_t point = 0;
    std::vector<double> shap;  // in the order of PointSet::dimensions()
  };
  std::vector<Row> rows;
};

enum class Explained { cost, failure };

// Of the objective `objective` (for cost). Needs two trials; with fewer, or without dimensions, all is empty.
Importance explain(const PointSet& points, const std::vector<Trial>& trials, Explained what, size_t objective = 0,
                   uint64_t seed = 0);

}  // namespace ridgeline::search
