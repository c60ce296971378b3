// Exact SHAP values of a forest: how much each feature moved a prediction from the mean, by Shapley's rule.
//
// What a tree says of a set S of known features is its mean over the samples that it was grown on, where nodes that ask
// for other features send on by their cover. The values add up: base + sum = prediction. Algorithm 2 of Lundberg et al.
// 2018 (arXiv 1802.03888), of L D^2 operations for L leaves at depth D; equal to the shap package's TreeExplainer with
// feature_perturbation="tree_path_dependent" (bench/check_tree_shap.py).
#pragma once

#include <span>
#include <vector>

#include "search/surrogate/forest.h"

namespace ridgeline::search {

// One a feature.
std::vector<double> shap_values(const Forest& forest, std::span<const double> row);

// The mean that the values start from.
double shap_base(const Forest& forest);

}  // namespace ridgeline::search
