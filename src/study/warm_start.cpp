#include "study/warm_start.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <sstream>

#include "core/error.h"
#include "core/log.h"
#include "study/store.h"

namespace ridgeline::study {
namespace {

using search::Outcome;

// The lines of an identity that decide what a point costs.
std::set<std::string> cost_lines(const std::string& identity) {
  std::set<std::string> lines;
  std::istringstream stream(identity);
  for (std::string line; std::getline(stream, line);) {
    const std::string name = line.substr(0, line.find(' '));
    const bool decides =
        !name.starts_with("space.") && name != "seed" && name != "warm_start" && name != "objective.prior";
    if (decides) lines.insert(line);
  }
  return lines;
}

std::optional<double> log_ratio(double value, double predicted) {
  if (!(value > 0) || !(predicted > 0)) return std::nullopt;
  return std::log(value / predicted);
}

search::EarlierTrial ratios_of(const TrialRecord& trial, double limit_bytes) {
  search::EarlierTrial earlier{trial.point};
  const bool ran = trial.outcome == Outcome::ok || trial.outcome == Outcome::stopped_early;
  if (ran && !trial.costs.empty() && !trial.predicted_costs.empty()) {
    earlier.log_cost = log_ratio(trial.costs.front(), trial.predicted_costs.front());
  }
  const bool has_need = trial.outcome == Outcome::out_of_memory && trial.missing_bytes > 0 && limit_bytes > 0;
  earlier.log_peak = log_ratio(has_need ? limit_bytes + trial.missing_bytes
                               : ran    ? trial.peak_bytes
                                        : 0,
                               trial.predicted_bytes);
  return earlier;
}

void take_over(const Problem& problem, const std::string& path, Beginning& beginning,
               std::set<std::string>& known_points) {
  if (!std::filesystem::is_regular_file(path)) {
    throw InputError("warm_start: {}: there is no such file; expected the SQLite file of an earlier study", path);
  }
  StudyStore store(path);
  const bool is_same = cost_lines(store.identity()) == cost_lines(problem.identity());
  const bool is_blind = problem.file().objective.prior == Prior::none || problem.predictions().empty();
  const double limit_bytes = store.limit_bytes();
  size_t known = 0, ratios = 0;
  for (TrialRecord trial : store.trials()) {
    if (!trial.has_ended() || trial.outcome == Outcome::infrastructure) continue;
    if (is_same && problem.points().find(trial.point)) {
      if (!known_points.insert(trial.point).second) continue;  // another file brought it
      trial.inherited = path;
      beginning.known.push_back(std::move(trial));
      ++known;
      continue;
    }
    const search::EarlierTrial earlier = ratios_of(trial, limit_bytes);
    if (is_blind || (!earlier.log_cost && !earlier.log_peak)) continue;
    beginning.earlier.push_back(earlier);
    ++ratios;
  }
  if (known + ratios == 0) {
    throw InputError(
        "warm_start: {}: nothing to take over: expected ended trials of the same problem, or trials with predictions "
        "and a "
        "machine and prior = \"simulator\" here",
        path);
  }
  spdlog::info("warm start from {}: {} trials of the same problem are known, {} correct predictions", path, known,
               ratios);
}

}  // namespace

Beginning beginning_of(const Problem& problem) {
  Beginning beginning{.limit_bytes = problem.limit_bytes()};
  std::set<std::string> known_points;
  for (const std::string& path : problem.file().warm_start) take_over(problem, path, beginning, known_points);
  return beginning;
}

}  // namespace ridgeline::study
