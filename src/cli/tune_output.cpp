#include "cli/tune_output.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/prediction_output.h"
#include "cli/tune_progress.h"
#include "core/text.h"
#include "study/tuner.h"

namespace ridgeline::cli {
namespace {

using nlohmann::json;
using search::Outcome;
using study::TrialRecord;

constexpr size_t kFewestExplained = 10;  // below, a forest tells nothing

json value_json(search::Objective goal, const std::vector<double>& costs, size_t index) {
  if (index >= costs.size() || !(costs[index] > 0)) return nullptr;
  return search::value_of(goal, costs[index]);
}

// What people read for each goal, by its name.
json values_json(const study::Problem& problem, const std::vector<double>& costs) {
  json values = json::object();
  const auto& goals = problem.file().goals;
  for (size_t i = 0; i < goals.size(); ++i) values[search::to_string(goals[i])] = value_json(goals[i], costs, i);
  return values;
}

json trial_json(const study::Problem& problem, const TrialRecord& trial) {
  const size_t index = problem.point_of(trial);
  const search::Point& point = problem.points().at(index);
  const search::Objective goal = problem.file().goals.front();
  json document = {{"trial", trial.number},
                   {"strategy", to_json(point.strategy)},
                   {"devices", point.devices},
                   {"predicted", value_json(goal, trial.predicted_costs, 0)},
                   {"outcome", trial.has_ended() ? search::to_string(trial.outcome) : "running"},
                   {"objective", trial.has_ended() ? value_json(goal, trial.costs, 0) : json()}};
  for (const auto& [name, value] : point.extra) document["strategy"][name] = value;
  if (problem.file().goals.size() > 1) document["objectives"] = values_json(problem, trial.costs);
  if (trial.predicted_bytes > 0) document["predicted_bytes"] = trial.predicted_bytes;
  if (trial.peak_bytes > 0) document["peak_bytes"] = trial.peak_bytes;
  if (trial.missing_bytes > 0) document["missing_bytes"] = trial.missing_bytes;
  if (!trial.message.empty()) document["message"] = trial.message;
  if (!trial.inherited.empty()) document["inherited"] = trial.inherited;
  if (trial.has_ended()) document["ended"] = *trial.place;
  return document;
}

json regret_json(const study::Result& result, search::Objective goal) {
  json curve = json::array();
  for (const study::Regret& regret : result.regret) {
    curve.push_back(
        {{"ended", regret.place}, {"best", search::value_of(goal, regret.best)}, {"excess", regret.excess}});
  }
  return curve;
}

json importance_json(const search::Importance& importance) {
  json document = {{"trials", importance.trials},
                   {"explained", importance.explained},
                   {"dimensions", json::array()},
                   {"pairs", json::array()}};
  for (const search::DimensionImportance& dimension : importance.dimensions) {
    json levels = json::array();
    for (const search::LevelEffect& level : dimension.levels) {
      levels.push_back({{"value", level.label},
                        {"partial_dependence", level.partial_dependence},
                        {"main_effect", level.main_effect},
                        {"trials", level.trials}});
    }
    document["dimensions"].push_back(
        {{"name", dimension.name}, {"shap", dimension.shap}, {"share", dimension.share}, {"values", levels}});
  }
  for (const search::PairImportance& pair : importance.pairs) {
    document["pairs"].push_back({{"names", {pair.left, pair.right}}, {"share", pair.share}});
  }
  return document;
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

// For RFC 4180: quoted where it must be.
std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char character : text) {
    if (character == '"') quoted += '"';
    quoted += character;
  }
  return quoted + "\"";
}

std::string number_cell(double value) { return value > 0 ? fmt::format("{}", value) : ""; }

}  // namespace

json study_json(const StudyView& view) {
  const study::Problem& problem = view.problem;
  const study::Result& result = view.result;
  const search::Objective goal = problem.file().goals.front();
  json document = {{"study", problem.file().path},
                   {"store", problem.file().store},
                   {"objective", search::to_string(goal)},
                   {"points", problem.points().size()},
                   {"trials", json::array()},
                   {"best", nullptr}};
  for (const TrialRecord& trial : view.trials) document["trials"].push_back(trial_json(problem, trial));
  if (result.best) document["best"] = trial_json(problem, *result.best);
  document["failures"] = json::object();
  for (const auto& [outcome, count] : result.outcomes) {
    if (outcome != Outcome::ok && outcome != Outcome::stopped_early) {
      document["failures"][search::to_string(outcome)] = count;
    }
  }
  document["regret"] = regret_json(result, goal);
  document["agreement"] = {{"trials", result.agreement.trials},
                           {"mean_error", result.agreement.mean_error},
                           {"mean_absolute_error", result.agreement.mean_absolute_error},
                           {"kendall_tau", result.agreement.kendall_tau}};
  document["confirmed"] = json::array();
  for (const study::Confirmation& confirmation : result.confirmations) {
    document["confirmed"].push_back({{"trial", confirmation.trial},
                                     {"step_seconds", confirmation.medians},
                                     {"objective", value_json(goal, confirmation.costs, 0)}});
  }
  document["importance"] = importance_json(result.importance);
  document["failure_importance"] = importance_json(result.failure_importance);
  if (problem.file().goals.size() > 1) {
    document["front"] = json::array();
    for (const TrialRecord& trial : result.front) document["front"].push_back(trial_json(problem, trial));
  }
  return document;
}

std::string top_table(const StudyView& view, size_t top) {
  const search::Objective goal = view.problem.file().goals.front();
  std::string text = fmt::format("{:>5}  {:>14}  {:>14}  {:>10}  strategy\n", "trial", "objective", "predicted", "peak");
  std::vector<TrialRecord> best = study::ranked(view.trials);
  best.resize(std::min(best.size(), top));
  for (const TrialRecord& trial : best) {
    const std::string predicted =
        trial.predicted_costs.empty() ? "-" : cost_text(goal, trial.predicted_costs.front());
    text += fmt::format("{:5}  {:>14}  {:>14}  {:>10}  {}\n", trial.number, cost_text(goal, trial.costs.front()),
                        predicted, trial.peak_bytes > 0 ? format_bytes(trial.peak_bytes) : "-",
                        strategy_text(view.problem, view.problem.point_of(trial)));
  }
  return text;
}

namespace {

// How much each dimension matters, and the value with which it is best by itself.
std::string importance_text(const search::Importance& importance, const char* what) {
  if (importance.dimensions.empty() || importance.trials < kFewestExplained) return "";
  std::string text = fmt::format("\nWhat decides {} ({} trials, {} of the variance explained):\n", what,
                                 importance.trials, percent(importance.explained));
  text += fmt::format("  {:>20}  {:>8}  {:>8}  least at\n", "dimension", "SHAP", "fANOVA");
  for (const search::DimensionImportance& dimension : importance.dimensions) {
    const auto least = std::min_element(dimension.levels.begin(), dimension.levels.end(),
                                        [](const search::LevelEffect& a, const search::LevelEffect& b) {
                                          return a.partial_dependence < b.partial_dependence;
                                        });
    text += fmt::format("  {:>20}  {:>8.3f}  {:>8}  {}\n", dimension.name, dimension.shap, percent(dimension.share),
                        least == dimension.levels.end() ? "-" : least->label);
  }
  return text;
}

}  // namespace

std::string study_summary(const StudyView& view, size_t top) {
  const study::Result& result = view.result;
  const search::Objective goal = view.problem.file().goals.front();
  std::string text = fmt::format("{}: {} points, {} trials ended", view.problem.file().store,
                                 view.problem.points().size(), result.ended);
  const auto known = std::count_if(view.trials.begin(), view.trials.end(),
                                   [](const TrialRecord& trial) { return !trial.inherited.empty(); });
  if (known > 0) text += fmt::format(" ({} of them in earlier studies)", known);
  if (result.running > 0) text += fmt::format(", {} under way", result.running);
  text += "\n";
  for (const auto& [outcome, count] : result.outcomes) {
    text += fmt::format("  {:>5}  {}\n", count, search::to_string(outcome));
  }
  if (!result.best) return text + "No trial has ended well yet.\n";
  text += "\n" + top_table(view, top);
  if (!result.confirmations.empty()) text += "\nMeasured again, in turns:\n";
  for (const study::Confirmation& confirmation : result.confirmations) {
    std::string turns;
    for (const double seconds : confirmation.medians) turns += " " + format_duration(seconds);
    text += fmt::format("  trial {:4}  {:>14}  turns{}\n", confirmation.trial,
                        cost_text(goal, confirmation.costs.front()), turns);
  }
  if (result.front.size() > 1) {
    text += "\nFront:\n";
    for (const TrialRecord& trial : result.front) {
      text += fmt::format("  trial {:4}", trial.number);
      for (size_t i = 0; i < trial.costs.size(); ++i) {
        text += fmt::format("  {:>14}", cost_text(view.problem.file().goals[i], trial.costs[i]));
      }
      text += "  " + strategy_text(view.problem, view.problem.point_of(trial)) + "\n";
    }
  }
  text += "\nThe best after so many trials, and its excess over the best known:\n";
  for (const study::Regret& regret : result.regret) {
    text += fmt::format("  {:5}  {:>14}  {}\n", regret.place, cost_text(goal, regret.best), percent(regret.excess));
  }
  if (result.agreement.trials > 1) {
    text += fmt::format("\nPredicted against found, {} trials: mean error {}, mean absolute {}, Kendall's tau {:.2f}\n",
                        result.agreement.trials, percent(result.agreement.mean_error),
                        percent(result.agreement.mean_absolute_error), result.agreement.kendall_tau);
  }
  text += importance_text(result.importance, "the objective");
  text += importance_text(result.failure_importance, "failure");
  text += fmt::format("\nBest: trial {}, {}\n  {}\n", result.best->number, cost_text(goal, result.best->costs.front()),
                      strategy_text(view.problem, view.problem.point_of(*result.best)));
  return text;
}

std::string study_csv(const StudyView& view) {
  const study::Problem& problem = view.problem;
  std::string text = "trial,ended,outcome";
  for (const search::Objective goal : problem.file().goals) text += "," + search::to_string(goal);
  text += ",predicted,predicted_bytes,peak_bytes,missing_bytes,devices";
  std::vector<std::string> names;
  for (const auto& [name, value] : search::numbers_of(problem.points().at(0))) {
    if (name != "devices") names.push_back(name);
  }
  for (const std::string& name : names) text += "," + name;
  text += ",message\r\n";
  for (const TrialRecord& trial : view.trials) {
    const search::Point& point = problem.points().at(problem.point_of(trial));
    text += fmt::format("{},{},{}", trial.number, trial.has_ended() ? std::to_string(*trial.place) : "",
                        trial.has_ended() ? search::to_string(trial.outcome) : "running");
    for (size_t i = 0; i < problem.file().goals.size(); ++i) {
      const bool has = i < trial.costs.size() && trial.costs[i] > 0;
      text += "," + (has ? number_cell(search::value_of(problem.file().goals[i], trial.costs[i])) : std::string());
    }
    const double predicted = trial.predicted_costs.empty() ? 0 : trial.predicted_costs.front();
    text += "," + (predicted > 0 ? number_cell(search::value_of(problem.file().goals.front(), predicted)) : std::string());
    text += fmt::format(",{},{},{},{}", number_cell(trial.predicted_bytes), number_cell(trial.peak_bytes),
                        number_cell(trial.missing_bytes), point.devices);
    const auto numbers = search::numbers_of(point);
    for (const std::string& name : names) text += fmt::format(",{}", numbers.at(name));
    text += "," + cell(trial.message) + "\r\n";
  }
  return text;
}

}  // namespace ridgeline::cli
