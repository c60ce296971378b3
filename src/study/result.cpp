#include "study/result.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "search/best.h"
#include "spec/config.h"
#include "study/steady_state.h"
#include "study/tuner.h"

namespace ridgeline::study {
namespace {

using search::Outcome;

std::vector<TrialRecord> by_place(const std::vector<TrialRecord>& trials) {
  std::vector<TrialRecord> ended;
  for (const TrialRecord& trial : trials) {
    if (trial.has_ended()) ended.push_back(trial);
  }
  std::sort(ended.begin(), ended.end(), [](const TrialRecord& a, const TrialRecord& b) { return *a.place < *b.place; });
  return ended;
}

std::vector<Confirmation> confirmations_of(const Problem& problem, const std::vector<TrialRecord>& trials,
                                           const std::vector<RunRecord>& runs) {
  std::map<int64_t, Confirmation> by_trial;
  std::map<int64_t, std::vector<double>> watts;
  for (const RunRecord& run : runs) {
    if (run.purpose != Purpose::confirm || run.outcome != Outcome::ok || run.step_seconds.empty()) continue;
    Confirmation& confirmation = by_trial[run.trial];
    confirmation.trial = run.trial;
    confirmation.medians.push_back(steady_state(run.step_seconds).seconds.median);
    watts[run.trial].push_back(run.watts);
  }
  std::vector<Confirmation> all;
  for (auto& [number, confirmation] : by_trial) {
    const size_t point = problem.point_of(trials.at(static_cast<size_t>(number) - 1));
    confirmation.costs = problem.costs(point, median_interval(confirmation.medians).median,
                                       median_interval(watts[number]).median);
    all.push_back(confirmation);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Confirmation& a, const Confirmation& b) { return a.costs.front() < b.costs.front(); });
  return all;
}

bool dominates(const TrialRecord& a, const TrialRecord& b) {
  bool is_better = false;
  for (size_t i = 0; i < a.costs.size(); ++i) {
    if (a.costs[i] > b.costs[i]) return false;
    is_better = is_better || a.costs[i] < b.costs[i];
  }
  return is_better;
}

std::vector<TrialRecord> front_of(const std::vector<TrialRecord>& good) {
  std::vector<TrialRecord> front;
  for (const TrialRecord& trial : good) {
    if (std::none_of(good.begin(), good.end(), [&](const TrialRecord& other) { return dominates(other, trial); })) {
      front.push_back(trial);
    }
  }
  return front;
}

std::vector<Regret> regret_of(const std::vector<TrialRecord>& ended, std::optional<double> known) {
  std::vector<Regret> curve;
  for (const TrialRecord& trial : ended) {
    if (trial.outcome != Outcome::ok || trial.costs.empty()) continue;
    if (!curve.empty() && trial.costs.front() >= curve.back().best) continue;
    curve.push_back({*trial.place, trial.costs.front()});
  }
  if (curve.empty()) return curve;
  if (curve.back().place != *ended.back().place) curve.push_back({*ended.back().place, curve.back().best});
  const double least = std::min(known.value_or(curve.back().best), curve.back().best);
  for (Regret& regret : curve) regret.excess = regret.best / least - 1;
  return curve;
}

Agreement agreement_of(const std::vector<TrialRecord>& good) {
  Agreement agreement;
  std::vector<std::pair<double, double>> pairs;
  for (const TrialRecord& trial : good) {
    if (trial.predicted_costs.empty() || !(trial.predicted_costs.front() > 0)) continue;
    pairs.emplace_back(trial.predicted_costs.front(), trial.costs.front());
  }
  agreement.trials = pairs.size();
  if (pairs.empty()) return agreement;
  int64_t concordant = 0, decided = 0;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const double error = pairs[i].first / pairs[i].second - 1;
    agreement.mean_error += error / static_cast<double>(pairs.size());
    agreement.mean_absolute_error += std::abs(error) / static_cast<double>(pairs.size());
    for (size_t j = 0; j < i; ++j) {
      const double order = (pairs[i].first - pairs[j].first) * (pairs[i].second - pairs[j].second);
      if (order == 0) continue;
      ++decided;
      concordant += order > 0 ? 1 : -1;
    }
  }
  if (decided > 0) agreement.kendall_tau = static_cast<double>(concordant) / static_cast<double>(decided);
  return agreement;
}

void explain(const Problem& problem, const std::vector<TrialRecord>& ended, Result& result) {
  std::vector<search::Trial> told;
  int64_t failed = 0;
  for (const TrialRecord& trial : ended) {
    if (trial.outcome == Outcome::infrastructure) continue;  // says nothing of the strategy
    told.push_back(problem.told(trial));
    failed += trial.outcome != Outcome::ok && trial.outcome != Outcome::stopped_early ? 1 : 0;
  }
  const uint64_t seed = problem.file().seed;
  result.importance = search::explain(problem.points(), told, search::Explained::cost, 0, seed);
  if (failed == 0 || failed == static_cast<int64_t>(told.size())) return;
  result.failure_importance = search::explain(problem.points(), told, search::Explained::failure, 0, seed);
}

}  // namespace

std::optional<double> known_best(const Problem& problem) {
  const search::Replay* replay = problem.replay();
  if (replay == nullptr) return std::nullopt;
  std::optional<double> best;
  for (size_t point = 0; point < replay->rows.size(); ++point) {
    if (replay->rows[point].outcome != Outcome::ok) continue;
    const double cost = problem.costs(point, replay->rows[point].step_seconds).front();
    best = std::min(best.value_or(cost), cost);
  }
  return best;
}

Result result_of(const Problem& problem, const std::vector<TrialRecord>& trials, const std::vector<RunRecord>& runs) {
  Result result;
  const std::vector<TrialRecord> ended = by_place(trials);
  const std::vector<TrialRecord> good = ranked(trials);
  result.ended = static_cast<int64_t>(ended.size());
  result.running = static_cast<int64_t>(trials.size()) - result.ended;
  for (const TrialRecord& trial : ended) ++result.outcomes[trial.outcome];
  result.confirmations = confirmations_of(problem, trials, runs);
  if (!result.confirmations.empty()) {
    result.best = trials.at(static_cast<size_t>(result.confirmations.front().trial) - 1);
    result.best->costs = result.confirmations.front().costs;
  } else if (!good.empty() && !problem.has_cheap_trials()) {
    result.best = good.front();
  }
  if (problem.file().goals.size() > 1) result.front = front_of(good);
  result.regret = regret_of(ended, known_best(problem));
  result.agreement = agreement_of(good);
  explain(problem, ended, result);
  return result;
}

std::string best_config(const Problem& problem, const Result& result) {
  if (!result.best) return "";
  const search::Point& point = problem.points().at(problem.point_of(*result.best));
  if (!spec::is_trainable(problem.train().model)) return "";
  spec::TrainSpec train = problem.train();
  train.strategy = point.strategy;
  const std::string seconds =
      format_duration(problem.seconds_at(problem.point_of(*result.best), result.best->costs.front()));
  const char* how = problem.is_measured() ? "measured" : "predicted";
  std::string text = fmt::format("# The best of {} trials of {}: {}, {} a step on {} devices.\n", result.ended,
                                 problem.file().path, how, seconds, point.devices);
  text += fmt::format("#   ridgeline train {} --nproc {}\n", problem.file().best, point.devices);
  if (train.data.path.empty()) {
    text += "# Set data.path and training.* before you train.\n";
    train.data.path = "corpus";
  }
  return text + "\n" + spec::to_toml(train);
}

}  // namespace ridgeline::study
