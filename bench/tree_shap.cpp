// Prints a forest grown on random data, rows, and their SHAP values as JSON, for bench/check_tree_shap.py.
#include "search/importance/tree_shap.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/random.h"

namespace {

using namespace ridgeline;
using nlohmann::json;

json to_json(const search::Tree& tree) {
  json arrays;
  for (const search::TreeNode& node : tree) {
    arrays["children_left"].push_back(node.left);
    arrays["children_right"].push_back(node.right);
    arrays["features"].push_back(node.feature);
    arrays["thresholds"].push_back(node.threshold);
    arrays["values"].push_back(node.value);
    arrays["covers"].push_back(node.cover);
  }
  return arrays;
}

}  // namespace

int main() {
  constexpr size_t kRows = 200, kFeatures = 9;
  search::FeatureRows rows;
  std::vector<double> values;
  for (size_t i = 0; i < kRows; ++i) {
    auto& row = rows.emplace_back();
    for (size_t d = 0; d < kFeatures; ++d) {
      row.push_back(philox4x32({static_cast<uint32_t>(i), static_cast<uint32_t>(d), 0, 0}, 1)[0] % (d + 2));
    }
    values.push_back(row[8] * row[7] - std::sqrt(row[6]) + (row[0] > 0 ? row[5] : row[4]));
  }
  const search::Forest forest(rows, values, {});
  json result;
  for (const search::Tree& tree : forest.trees()) result["trees"].push_back(to_json(tree));
  for (const auto& row : rows) {
    result["rows"].push_back(row);
    result["shap"].push_back(search::shap_values(forest, row));
    result["predicted"].push_back(forest.predict(row));
  }
  result["base"] = search::shap_base(forest);
  std::puts(result.dump().c_str());
  return 0;
}
