// What `tune` shows of a study: a summary for people, the JSON document that the design names, a CSV of all trials.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "study/result.h"

namespace ridgeline::cli {

struct StudyView {
  const study::Problem& problem;
  const std::vector<study::TrialRecord>& trials;
  const std::vector<study::RunRecord>& runs;
  const study::Result& result;
};

nlohmann::json study_json(const StudyView& view);
std::string study_summary(const StudyView& view, size_t top);
std::string top_table(const StudyView& view, size_t top);
// A header, then a line a trial in the order of their starts (RFC 4180).
std::string study_csv(const StudyView& view);

}  // namespace ridgeline::cli
