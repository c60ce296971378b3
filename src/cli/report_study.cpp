#include "cli/report_study.h"

#include <spdlog/spdlog.h>

#include <filesystem>

#include "cli/report_layout.h"
#include "cli/study_problem.h"
#include "cli/tune_output.h"
#include "core/error.h"
#include "report/page/page.h"
#include "study/store.h"

namespace ridgeline::cli {
namespace {

using nlohmann::json;

constexpr size_t kTop = 5;

struct StoredStudy {
  explicit StoredStudy(const std::string& study_file) : problem(load_problem(study_file)) {
    const std::string& path = problem.file().store;
    if (!std::filesystem::exists(path)) {
      throw InputError("{}: there is no such study yet; `ridgeline tune {}` begins it", path, study_file);
    }
    study::StudyStore store(path);
    trials = store.trials();
    runs = store.runs();
    if (trials.size() > 300) spdlog::info("{}: explaining {} trials", path, trials.size());
    result = study::result_of(problem, trials, runs);
  }
  StudyView view() const { return {problem, trials, runs, result}; }

  study::Problem problem;
  std::vector<study::TrialRecord> trials;
  std::vector<study::RunRecord> runs;
  study::Result result;
};

json goal_json(search::Objective goal) {
  return {{"name", search::to_string(goal)}, {"larger_is_better", search::larger_is_better(goal)}};
}

json shap_json(const search::PointSet& points, const search::Importance& importance) {
  json dimensions = json::array();
  for (size_t d = 0; d < points.dimensions().size(); ++d) {
    const search::Dimension& dimension = points.dimensions()[d];
    json rows = json::array();
    for (const search::Importance::Row& row : importance.rows) {
      rows.push_back({points.level(row.point, d), report::rounded(row.shap[d])});
    }
    dimensions.push_back({{"name", dimension.name}, {"labels", dimension.labels}, {"rows", rows}});
  }
  return dimensions;
}

}  // namespace

json study_report_json(const std::string& study_file) {
  const StoredStudy stored(study_file);
  const study::StudyFile& file = stored.problem.file();
  json document = study_json(stored.view());
  document["goal"] = goal_json(file.goals.front());
  document["goals"] = json::array();
  for (const search::Objective goal : file.goals) document["goals"].push_back(goal_json(goal));
  document["kind"] = stored.problem.is_measured() ? "measured" : stored.problem.replay() ? "replayed" : "simulated";
  document["shap"] = shap_json(stored.problem.points(), stored.result.importance);
  document["limit_bytes"] = stored.problem.limit_bytes();
  document["settings"] = settings_json(file.identity);
  if (!file.machine.empty()) document["machine_facts"] = machine_json(stored.problem.machine());
  return document;
}

std::string study_report_text(const std::string& study_file) {
  const StoredStudy stored(study_file);
  return study_summary(stored.view(), kTop);
}

}  // namespace ridgeline::cli
