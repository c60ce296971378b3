#include "search/tune/searcher.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/error.h"
#include "core/random.h"
#include "search/surrogate/process_model.h"
#include "search/tune/acquisition.h"
#include "search/tune/candidates.h"
#include "search/tune/feasibility.h"

namespace ridgeline::search {
namespace {

constexpr double kGuessScale = 0.05;  // kernel units of log(cost / predicted cost)
constexpr double kBlindScale = 0.3;
constexpr size_t kFreeTrials = 10;       // that failure_share does not count
constexpr size_t kFreeBlindTrials = 20;  // without guesses
constexpr double kKeptBack = 0.3;        // share of the granted risk: models err
// A blind search of a space most of which fails learns nothing where it is safe: it is granted more.
constexpr double kHarsh = 0.7;
constexpr double kHarshFactor = 3;
constexpr double kLeastRisk = 0.01;
constexpr double kHopeless = 0.01;  // a search ends where nothing is left that is likelier to run
constexpr double kMostRisk = 0.6;   // what is likelier to fail than this is left until nothing else is
constexpr size_t kShortlist = 256;  // points whose interplay with pending ones is looked at
constexpr size_t kBestTrials = 8;   // whose neighbours are candidates

std::vector<LevelAxis> axes_of(const PointSet& points) {
  std::vector<LevelAxis> axes;
  for (size_t d = 0; d < points.dimensions().size(); ++d) {
    LevelAxis& axis = axes.emplace_back();
    axis.unordered = points.dimensions()[d].scale == Scale::unordered;
    for (size_t level = 0; level < points.dimensions()[d].values.size(); ++level) {
      axis.coordinates.push_back(points.coordinate(d, level));
    }
  }
  return axes;
}

std::shared_ptr<const LevelColumns> columns_of(const PointSet& points, const std::vector<size_t>& chosen) {
  auto columns = std::make_shared<LevelColumns>(points.dimensions().size());
  for (size_t d = 0; d < columns->size(); ++d) {
    for (const size_t point : chosen) (*columns)[d].push_back(static_cast<uint16_t>(points.level(point, d)));
  }
  return columns;
}

std::vector<uint16_t> levels_of(const PointSet& points, size_t point) {
  std::vector<uint16_t> levels;
  for (size_t d = 0; d < points.dimensions().size(); ++d)
    levels.push_back(static_cast<uint16_t>(points.level(point, d)));
  return levels;
}

bool ran(const Trial& trial) { return trial.outcome == Outcome::ok || trial.outcome == Outcome::stopped_early; }

}  // namespace

struct Searcher::State {
  State(const PointSet& all_points, std::vector<Guess> all_guesses, const SearchOptions& search_options)
      : points(all_points),
        guesses(std::move(all_guesses)),
        options(search_options),
        axes(axes_of(points)),
        feasibility(points, guesses, options, axes),
        tried(points.size(), false) {
    KernelShape shape;
    shape.lengths.assign(axes.size(), 1.0);
    costs.assign_each(*this, shape);
  }

  // A model of each objective.
  struct Costs : std::vector<std::unique_ptr<ProcessModel>> {
    void assign_each(const State& state, const KernelShape& shape) {
      const double scale = state.guesses.empty() ? kBlindScale : kGuessScale;
      for (size_t k = 0; k < state.options.objectives; ++k) {
        push_back(std::make_unique<ProcessModel>(state.axes, shape, scale));
      }
    }
  };

  bool is_open(size_t point) const {
    return !tried[point] && pending.count(point) == 0 && !feasibility.is_ruled_out(point);
  }
  double expected_log_cost(size_t point, size_t objective) const;
  double log_cost(const Trial& trial, const std::vector<double>& weights) const;
  std::vector<double> draw_weights() const;
  double draw(uint32_t purpose, size_t number) const;
  std::vector<size_t> best_points(size_t among) const;
  void look_at_candidates();
  double allowed_risk(const std::vector<double>& probabilities) const;
  void combine(const std::vector<double>& weights, std::vector<double>& means, std::vector<double>& variances);
  void foresee_pending(const std::vector<double>& weights, const std::vector<size_t>& places,
                       std::vector<double>& variances);
  bool is_exhausted(const std::vector<double>& probabilities) const;
  std::optional<size_t> best_place(const std::vector<double>& weights, const std::vector<double>& probabilities);

  const PointSet& points;
  std::vector<Guess> guesses;
  SearchOptions options;
  std::vector<LevelAxis> axes;
  Feasibility feasibility;
  Costs costs;
  std::vector<Trial> trials;
  std::vector<bool> tried;
  std::set<size_t> pending;
  std::vector<size_t> candidates;       // ascending
  std::optional<size_t> candidates_of;  // number of trials that they were chosen after
};

double Searcher::State::expected_log_cost(size_t point, size_t objective) const {
  return guesses.empty() || guesses[point].costs.empty() ? 0 : std::log(guesses[point].costs[objective]);
}

double Searcher::State::log_cost(const Trial& trial, const std::vector<double>& weights) const {
  double sum = 0;
  for (size_t k = 0; k < weights.size(); ++k) sum += weights[k] * std::log(trial.costs[k]);
  return sum;
}

// In (0, 1): a function of the seed, the history's length and the number of pending points.
double Searcher::State::draw(uint32_t purpose, size_t number) const {
  const PhiloxBlock block = philox4x32({static_cast<uint32_t>(number), purpose, static_cast<uint32_t>(trials.size()),
                                        static_cast<uint32_t>(pending.size())},
                                       random_key(options.seed, "tune"));
  return (static_cast<double>(block[0]) + 0.5) / 4294967296.0;
}

// Uniform on the simplex, so that all parts of the front are visited.
std::vector<double> Searcher::State::draw_weights() const {
  if (options.objectives == 1) return {1.0};
  std::vector<double> weights;
  double sum = 0;
  for (size_t k = 0; k < options.objectives; ++k) sum += weights.emplace_back(-std::log(draw(0, k)));
  for (double& weight : weights) weight /= sum;
  return weights;
}

std::vector<size_t> Searcher::State::best_points(size_t among) const {
  std::vector<std::pair<double, size_t>> keyed;
  const std::vector<double> equal(options.objectives, 1.0);
  for (size_t i = 0; i < among; ++i) {
    if (ran(trials[i])) keyed.emplace_back(log_cost(trials[i], equal), trials[i].point);
  }
  std::sort(keyed.begin(), keyed.end());
  std::vector<size_t> best;
  for (size_t i = 0; i < std::min(kBestTrials, keyed.size()); ++i) best.push_back(keyed[i].second);
  return best;
}

void Searcher::State::look_at_candidates() {
  const bool fixed = points.size() <= kMostCandidates;
  const size_t after = fixed ? 0 : fit_size(trials.size());
  if (candidates_of == after) return;
  candidates = choose_candidates(points, guesses, options, best_points(after));
  candidates_of = after;
  const auto columns = columns_of(points, candidates);
  for (auto& model : costs) model->look_at(columns);
  feasibility.look_at(candidates, columns);
}

// The share of failures that was granted, less what was spent and what pending trials may spend.
double Searcher::State::allowed_risk(const std::vector<double>& probabilities) const {
  const size_t started = trials.size() + pending.size();
  const size_t free_trials = guesses.empty() ? kFreeBlindTrials : kFreeTrials;
  if (started < free_trials) return kMostRisk;
  double spent = 0, early = 0;
  for (size_t i = 0; i < trials.size(); ++i) {
    if (!ran(trials[i]) && trials[i].outcome != Outcome::infrastructure) (i < free_trials ? early : spent) += 1;
  }
  for (const size_t point : pending) {
    const auto found = std::lower_bound(candidates.begin(), candidates.end(), point);
    if (found != candidates.end() && *found == point) spent += 1 - probabilities[found - candidates.begin()];
  }
  double share = (1 - kKeptBack) * options.failure_share;
  const bool is_harsh = early >= kHarsh * static_cast<double>(free_trials);
  if (guesses.empty() && is_harsh) share *= kHarshFactor;
  const double granted = share * static_cast<double>(started + 1 - free_trials);
  return std::clamp(granted - spent, kLeastRisk, kMostRisk);
}

void Searcher::State::combine(const std::vector<double>& weights, std::vector<double>& means,
                              std::vector<double>& variances) {
  means.assign(candidates.size(), 0);
  variances.assign(candidates.size(), 0);
  for (size_t k = 0; k < weights.size(); ++k) {
    const Posterior& posterior = costs[k]->posterior();
    for (size_t c = 0; c < candidates.size(); ++c) {
      means[c] += weights[k] * (posterior.mean[c] + expected_log_cost(candidates[c], k));
      variances[c] += weights[k] * weights[k] * posterior.deviation[c] * posterior.deviation[c];
    }
  }
}

void Searcher::State::foresee_pending(const std::vector<double>& weights, const std::vector<size_t>& places,
                                      std::vector<double>& variances) {
  std::vector<size_t> waiting;
  for (const size_t point : pending) {
    const auto found = std::lower_bound(candidates.begin(), candidates.end(), point);
    if (found != candidates.end() && *found == point) waiting.push_back(found - candidates.begin());
  }
  if (waiting.empty()) return;
  std::vector<double> left(variances.size(), 0);
  for (size_t k = 0; k < weights.size(); ++k) {
    const double unit = weights[k] * weights[k] * costs[k]->posterior().scale * costs[k]->posterior().scale;
    const auto scaled = [&](const std::vector<float>& relative) {
      std::vector<double> result(relative.begin(), relative.end());
      for (double& value : result) value *= unit;
      return result;
    };
    const GaussianProcess& process = costs[k]->process();
    std::vector<double> own;
    for (const size_t place : places) {
      const double deviation = weights[k] * costs[k]->posterior().deviation[place];
      own.push_back(deviation * deviation);
    }
    condition_on_pending(scaled(process.covariance(waiting, waiting)), scaled(process.covariance(waiting, places)),
                         unit * process.noise(), own);
    for (size_t i = 0; i < own.size(); ++i) left[i] += own[i];
  }
  // Never to nothing: what is expected of pending trials is not what they will bring.
  for (size_t i = 0; i < variances.size(); ++i) variances[i] = std::max(left[i], 1e-4 * variances[i]);
}

// Whether something ran, and all that is left is as good as certain to fail.
bool Searcher::State::is_exhausted(const std::vector<double>& probabilities) const {
  if (candidates.size() < points.size() || std::none_of(trials.begin(), trials.end(), ran)) return false;
  for (size_t c = 0; c < candidates.size(); ++c) {
    if (is_open(candidates[c]) && probabilities[c] >= kHopeless) return false;
  }
  return true;
}

std::optional<size_t> Searcher::State::best_place(const std::vector<double>& weights,
                                                  const std::vector<double>& probabilities) {
  std::vector<double> means, variances;
  combine(weights, means, variances);
  std::vector<size_t> open;
  double safest = 0;
  for (size_t c = 0; c < candidates.size(); ++c) {
    if (!is_open(candidates[c])) continue;
    open.push_back(c);
    safest = std::max(safest, probabilities[c]);
  }
  if (open.empty()) return std::nullopt;
  // What is safe enough, or else what is about as safe as can be.
  const double least = std::min(1 - allowed_risk(probabilities), safest - 0.2 * (1 - safest));
  std::erase_if(open, [&](size_t c) { return probabilities[c] < least; });

  double best = std::numeric_limits<double>::infinity();
  for (const Trial& trial : trials) {
    if (ran(trial)) best = std::min(best, log_cost(trial, weights));
  }
  const bool has_run = std::isfinite(best);
  if (!has_run) {
    for (const size_t c : open) best = std::min(best, means[c]);
  }
  const auto score = [&](size_t c, double variance) {
    // Without a prediction or a run no point is better than another: chance decides among the safe ones.
    const double chance = has_run || !guesses.empty() ? 0 : 2 * draw(1, candidates[c]);
    return log_expected_improvement(best, means[c], std::sqrt(std::max(variance, 1e-12))) +
           std::log(probabilities[c] + 1e-12) + chance;
  };
  std::vector<std::pair<double, size_t>> ranked;
  for (const size_t c : open) ranked.emplace_back(-score(c, variances[c]), c);
  const size_t kept = std::min(kShortlist, ranked.size());
  std::partial_sort(ranked.begin(), ranked.begin() + static_cast<ptrdiff_t>(kept), ranked.end());
  std::vector<size_t> places;
  std::vector<double> foreseen;
  for (size_t i = 0; i < kept; ++i) {
    places.push_back(ranked[i].second);
    foreseen.push_back(variances[ranked[i].second]);
  }
  foresee_pending(weights, places, foreseen);
  size_t winner = 0;
  double most = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < kept; ++i) {
    const double value = score(places[i], foreseen[i]);
    if (value > most) {
      most = value;
      winner = places[i];
    }
  }
  return winner;
}

Searcher::Searcher(const PointSet& points, std::vector<Guess> guesses, const SearchOptions& options) {
  if (!guesses.empty()) {
    RIDGELINE_ASSERT(guesses.size() == points.size());
    for (const Guess& guess : guesses) {
      RIDGELINE_ASSERT(guess.costs.empty() || guess.costs.size() == options.objectives);
      for (const double cost : guess.costs) RIDGELINE_ASSERT(cost > 0 && std::isfinite(cost));
    }
  }
  RIDGELINE_ASSERT(options.objectives > 0);
  state_ = std::make_unique<State>(points, std::move(guesses), options);
}

Searcher::~Searcher() = default;
Searcher::Searcher(Searcher&&) noexcept = default;
Searcher& Searcher::operator=(Searcher&&) noexcept = default;

std::optional<size_t> Searcher::ask() {
  State& state = *state_;
  state.look_at_candidates();
  const std::vector<double> probabilities = state.feasibility.probabilities();
  if (state.is_exhausted(probabilities)) return std::nullopt;
  const std::optional<size_t> place = state.best_place(state.draw_weights(), probabilities);
  if (place) {
    state.pending.insert(state.candidates[*place]);
    return state.candidates[*place];
  }
  // A space larger than what is looked at at once: whatever is left.
  for (size_t i = 0; i < state.points.size(); ++i) {
    if (!state.is_open(i)) continue;
    state.pending.insert(i);
    return i;
  }
  return std::nullopt;
}

void Searcher::tell(const Trial& trial) {
  State& state = *state_;
  RIDGELINE_ASSERT(trial.point < state.points.size());
  state.pending.erase(trial.point);
  state.trials.push_back(trial);
  if (trial.outcome == Outcome::infrastructure) return;
  state.tried[trial.point] = true;
  if (ran(trial)) {
    RIDGELINE_ASSERT(trial.costs.size() == state.options.objectives);
    for (size_t k = 0; k < trial.costs.size(); ++k) {
      RIDGELINE_ASSERT(trial.costs[k] > 0 && std::isfinite(trial.costs[k]));
      state.costs[k]->add(levels_of(state.points, trial.point),
                          std::log(trial.costs[k]) - state.expected_log_cost(trial.point, k));
    }
  }
  state.feasibility.tell(trial);
}

void Searcher::mark_pending(size_t point) {
  RIDGELINE_ASSERT(point < state_->points.size());
  state_->pending.insert(point);
}

void Searcher::forget_pending(size_t point) { state_->pending.erase(point); }

Belief Searcher::belief(size_t point) const { return beliefs({point}).front(); }

std::vector<Belief> Searcher::beliefs(const std::vector<size_t>& points) const {
  const auto columns = columns_of(state_->points, points);
  std::vector<Belief> result(points.size());
  for (size_t k = 0; k < state_->options.objectives; ++k) {
    const Posterior posterior = state_->costs[k]->posterior_of(columns);
    for (size_t i = 0; i < points.size(); ++i) {
      result[i].costs.push_back(std::exp(posterior.mean[i] + state_->expected_log_cost(points[i], k)));
      if (k == 0) result[i].spread = posterior.deviation[i];
    }
  }
  const std::vector<Feasibility::Verdict> verdicts = state_->feasibility.verdicts(points, columns);
  for (size_t i = 0; i < points.size(); ++i) {
    result[i].feasible = verdicts[i].probability;
    result[i].peak_bytes = verdicts[i].peak_bytes;
  }
  return result;
}

const std::vector<Trial>& Searcher::trials() const { return state_->trials; }

}  // namespace ridgeline::search
