// A study for a report: the document of `tune --json`, and what its charts need besides.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace ridgeline::cli {

// Beside the keys of study_json: "goal" {name, larger_is_better}, "goals" (the same, all), "shap" (for each dimension
// its name, its labels, and rows [level, SHAP value] of the trials), "settings" of the study file and "machine_facts".
// Throws InputError where there is no study yet.
nlohmann::json study_report_json(const std::string& study_file);
std::string study_report_text(const std::string& study_file);

}  // namespace ridgeline::cli
