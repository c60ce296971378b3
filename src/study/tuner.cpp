#include "study/tuner.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace ridgeline::study {

using search::Outcome;

std::vector<TrialRecord> ranked(const std::vector<TrialRecord>& trials) {
  std::vector<TrialRecord> good;
  for (const TrialRecord& trial : trials) {
    if (trial.has_ended() && trial.outcome == Outcome::ok && !trial.costs.empty()) good.push_back(trial);
  }
  std::stable_sort(good.begin(), good.end(),
                   [](const TrialRecord& a, const TrialRecord& b) { return a.costs.front() < b.costs.front(); });
  return good;
}

Tuner::Tuner(Problem& problem, StudyStore& store, std::unique_ptr<Suggestions> suggestions, Executor* executor,
             TuneListener& listener, std::string program)
    : problem_(problem),
      store_(store),
      executor_(executor),
      listener_(listener),
      program_(std::move(program)),
      suggestions_(std::move(suggestions)) {}

TuneEnd Tuner::run() {
  restore();
  if (!problem_.is_measured()) return search_in_process();
  const TuneEnd end = search_measured();
  if (end == TuneEnd::interrupted) return end;
  return confirm() == TuneEnd::interrupted ? TuneEnd::interrupted : end;
}

void Tuner::restore() {
  trials_ = store_.trials();
  std::vector<TrialRecord> ended;
  for (const TrialRecord& trial : trials_) {
    if (trial.has_ended()) ended.push_back(trial);
  }
  std::sort(ended.begin(), ended.end(),
            [](const TrialRecord& a, const TrialRecord& b) { return *a.place < *b.place; });
  for (const TrialRecord& trial : ended) {
    suggestions_->tell(problem_.told(trial));
    count(trial);
  }
  const std::vector<RunRecord> runs = problem_.is_measured() ? store_.runs() : std::vector<RunRecord>();
  for (const TrialRecord& trial : trials_) {
    if (trial.has_ended()) continue;
    suggestions_->mark_pending(problem_.point_of(trial));
    restore_open(trial, runs);
  }
  for (const RunRecord& run : runs) {
    if (!run.is_open()) remove_run_folder(problem_.file(), run.id);
  }
  for (const RunRecord& open : runs) {
    if (!open.is_open() || open.purpose == Purpose::search) continue;
    // Of a confirmation that was under way: all that is left of it ends, and the round is done anew.
    const TrialRecord& trial = trials_.at(static_cast<size_t>(open.trial) - 1);
    const auto run = make_run(open, problem_.point_of(trial), Fidelity::whole);
    run->recover();
    run->interrupt();
    store_.end_run(run->record());
    run->forget();
  }
  if (!trials_.empty()) listener_.resumed(trials_);
}

void Tuner::restore_open(const TrialRecord& trial, const std::vector<RunRecord>& runs) {
  int64_t attempts = 0;
  std::optional<RunRecord> open;
  for (const RunRecord& run : runs) {
    if (run.trial != trial.number || run.purpose != Purpose::search) continue;
    if (run.is_open()) open = run;
    if (run.outcome == Outcome::infrastructure) ++attempts;
  }
  if (open) {
    auto run = make_run(*open, problem_.point_of(trial));
    if (run->recover()) {
      active_.push_back({trial, std::move(run), attempts});
      return;
    }
    run->interrupt();
    store_.end_run(run->record());
    run->forget();
  }
  RunRecord again{.trial = trial.number, .nodes = nodes_of(problem_.point_of(trial), Fidelity::cheap)};
  again.id = store_.begin_run(again.trial, Purpose::search, 0, again.nodes);
  add_active(trial, again, attempts);
}

bool Tuner::within_budget() {
  const BudgetSpec& budget = problem_.file().budget;
  const auto tried = std::count_if(trials_.begin(), trials_.end(),
                                   [](const TrialRecord& trial) { return trial.inherited.empty(); });
  if (budget.trials > 0 && tried >= budget.trials) return false;
  if (budget.hours > 0 && store_.active_seconds() >= budget.hours * 3600) return false;
  return budget.node_hours <= 0 || store_.node_seconds() < budget.node_hours * 3600;
}

TrialRecord Tuner::next_trial(size_t point) const {
  TrialRecord trial;
  trial.number = static_cast<int64_t>(trials_.size()) + 1;
  trial.point = problem_.points().key(point);
  trial.asked_at = now_seconds();
  if (!problem_.predictions().empty()) {
    trial.predicted_costs = problem_.predictions()[point].costs;
    trial.predicted_bytes = problem_.predictions()[point].peak_bytes;
  }
  return trial;
}

TuneEnd Tuner::search_in_process() {
  while (within_budget()) {
    if (interrupt_.wait(0)) return TuneEnd::interrupted;
    const std::optional<size_t> point = suggestions_->ask();
    if (!point) return TuneEnd::exhausted;
    TrialRecord trial = next_trial(*point);
    listener_.started(trial, problem_.points().at(*point));
    const search::Trial result = problem_.evaluate(*point);
    trial.outcome = result.outcome;
    trial.costs = result.costs;
    trial.peak_bytes = result.peak_bytes;
    trial.missing_bytes = result.missing_bytes;
    RIDGELINE_ASSERT(store_.record_trial(trial) == trial.number);
    trial.place = trial.number;
    trial.ended_at = now_seconds();
    trials_.push_back(trial);
    suggestions_->tell(result);
    count(trial);
    listener_.ended(trial, problem_.points().at(*point));
  }
  return TuneEnd::budget;
}

int64_t Tuner::nodes_of(size_t point, Fidelity fidelity) const {
  return executor_->nodes_of(problem_.layout(point, fidelity).devices);
}

MeasureOrder Tuner::order_of(size_t point, Fidelity fidelity) const {
  const MeasureSpec& measure = problem_.file().measure;
  const ExecutorSpec& executor = problem_.file().executor;
  return {.point = point,
          .layout = problem_.layout(point, fidelity),
          .steps = measure.steps,
          .limits = {.least_steps = measure.least_steps,
                     .tolerance = measure.tolerance,
                     .heartbeat_seconds = executor.heartbeat_seconds,
                     .deadline_seconds = executor.deadline_seconds}};
}

std::unique_ptr<MeasuredRun> Tuner::make_run(const RunRecord& begun, size_t point, Fidelity fidelity) {
  return std::make_unique<MeasuredRun>(problem_, *executor_, store_, begun, order_of(point, fidelity), program_);
}

TuneEnd Tuner::search_measured() {
  while (true) {
    while (static_cast<int64_t>(active_.size()) < problem_.file().executor.slots && within_budget()) {
      const std::optional<size_t> point = suggestions_->ask();
      if (!point) break;
      begin(*point);
    }
    // With nothing under way there is nothing to wait for: the space is exhausted, or the budget is.
    if (active_.empty()) return within_budget() ? TuneEnd::exhausted : TuneEnd::budget;
    for (size_t i = 0; i < active_.size();) {
      if (advance(active_[i])) {
        active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
    show();
    if (interrupt_.wait(active_.empty() ? 0 : executor_->poll_seconds())) {
      interrupt_all();
      return TuneEnd::interrupted;
    }
  }
}

void Tuner::begin(size_t point) {
  TrialRecord trial = next_trial(point);
  const int64_t nodes = nodes_of(point, Fidelity::cheap);
  const Started started = store_.begin_trial(trial.point, trial.predicted_costs, trial.predicted_bytes, nodes);
  RIDGELINE_ASSERT(started.trial == trial.number);
  trials_.push_back(trial);
  add_active(trial, {.id = started.run, .trial = trial.number, .nodes = nodes}, 0);
}

void Tuner::add_active(const TrialRecord& trial, const RunRecord& run, int64_t attempts) {
  active_.push_back({trial, make_run(run, problem_.point_of(trial)), attempts});
}

// Whether it has ended.
bool Tuner::advance(Active& active) {
  if (!active.run->is_started()) {
    if (active.run->record().is_open() && !active.run->can_start()) return false;
    if (active.run->record().is_open()) {
      listener_.started(active.trial, problem_.points().at(active.run->point()));
      active.run->start();
    }
  }
  std::optional<double> bound = bound_of(active.run->point());
  if (bound) *bound /= active.run->layout().seconds_ratio;
  if (!active.run->poll(steady_now(), bound)) return false;
  if (active.run->record().outcome == Outcome::infrastructure && active.attempts < problem_.file().executor.retries) {
    retry(active);
    return false;
  }
  finish(active);
  return true;
}

void Tuner::retry(Active& active) {
  const RunRecord failed = active.run->record();
  store_.end_run(failed);
  active.run->forget();
  listener_.retried(active.trial, failed.message);
  RunRecord again{.trial = failed.trial, .nodes = failed.nodes};
  again.id = store_.begin_run(again.trial, Purpose::search, 0, again.nodes);
  active.run = make_run(again, active.run->point());
  ++active.attempts;
}

// Of a cheap run: what the whole is to be expected to take.
void Tuner::take_result(const MeasuredRun& measured, TrialRecord& trial) const {
  const RunRecord& run = measured.record();
  const Layout& layout = measured.layout();
  trial.outcome = *run.outcome;
  trial.peak_bytes = run.peak_bytes * layout.bytes_ratio;
  trial.missing_bytes = run.missing_bytes;
  trial.message = run.message;
  if (trial.outcome != Outcome::ok && trial.outcome != Outcome::stopped_early) return;
  const double limit = problem_.limit_bytes();
  if (!layout.is_whole() && limit > 0 && trial.peak_bytes > limit) {
    trial.outcome = Outcome::out_of_memory;
    trial.missing_bytes = trial.peak_bytes - limit;
    trial.message = "the cheap run's memory, scaled to the whole, is over the limit";
    return;
  }
  trial.costs = problem_.costs(measured.point(), measured.watch()->state().seconds.median * layout.seconds_ratio,
                               run.watts * static_cast<double>(problem_.points().at(measured.point()).devices) /
                                   static_cast<double>(layout.devices));
}

void Tuner::finish(Active& active) {
  const RunRecord& run = active.run->record();
  TrialRecord& trial = trials_.at(static_cast<size_t>(active.trial.number) - 1);
  take_result(*active.run, trial);
  trial.ended_at = now_seconds();
  trial.place = store_.end_trial(run, trial);
  active.run->forget();
  suggestions_->tell(problem_.told(trial));
  count(trial);
  listener_.ended(trial, problem_.points().at(active.run->point()));
}

void Tuner::count(const TrialRecord& trial) {
  if (trial.outcome != Outcome::ok || trial.costs.empty()) return;
  best_cost_ = std::min(best_cost_.value_or(trial.costs.front()), trial.costs.front());
}

// A member of a front may be slow: with several goals no trial is hopeless.
std::optional<double> Tuner::bound_of(size_t point) const {
  const double share = problem_.file().measure.hopeless;
  if (!best_cost_ || share <= 0 || problem_.file().goals.size() > 1) return std::nullopt;
  return problem_.seconds_at(point, *best_cost_) * (1 + share);
}

void Tuner::interrupt_all() {
  for (Active& active : active_) {
    active.run->interrupt();
    store_.end_run(active.run->record());
    active.run->forget();
  }
  active_.clear();
}

void Tuner::show() {
  std::vector<const MeasuredRun*> running;
  for (const Active& active : active_) {
    if (active.run->is_started()) running.push_back(active.run.get());
  }
  listener_.tick(running);
}

// In turns, so that a machine that becomes slower by the hour does so for all of them.
TuneEnd Tuner::confirm() {
  const MeasureSpec& measure = problem_.file().measure;
  std::vector<TrialRecord> best = ranked(trials_), confirmed;
  // Where trials were cheap, a whole run may fail: then the next best takes its place.
  const bool may_fail = problem_.has_cheap_trials();
  if (!may_fail) best.resize(std::min(best.size(), static_cast<size_t>(measure.confirm)));
  if (best.size() < 2 && !may_fail && !measure.confirm_alone) return TuneEnd::budget;
  for (const TrialRecord& trial : best) {
    if (static_cast<int64_t>(confirmed.size()) == measure.confirm) break;
    if (!confirm_once(trial, 1)) return TuneEnd::interrupted;
    if (!may_fail || is_confirmed(trial, 1)) confirmed.push_back(trial);
  }
  for (int64_t round = 2; round <= measure.confirm_rounds; ++round) {
    for (const TrialRecord& trial : confirmed) {
      if (!confirm_once(trial, round)) return TuneEnd::interrupted;
    }
  }
  return TuneEnd::budget;
}

bool Tuner::is_confirmed(const TrialRecord& trial, int64_t round) {
  const std::vector<RunRecord> runs = store_.runs();
  return std::any_of(runs.begin(), runs.end(), [&](const RunRecord& run) {
    return run.trial == trial.number && run.purpose == Purpose::confirm && run.round == round && run.outcome == Outcome::ok;
  });
}

// False where it was interrupted.
bool Tuner::confirm_once(const TrialRecord& trial, int64_t round) {
  for (const RunRecord& run : store_.runs()) {
    if (run.trial == trial.number && run.purpose == Purpose::confirm && run.round == round && run.outcome) return true;
  }
  listener_.confirming(trial, round);
  const size_t point = problem_.point_of(trial);
  MeasureOrder order = order_of(point, Fidelity::whole);
  order.steps = problem_.file().measure.confirm_steps;
  order.limits.tolerance = 0;
  RunRecord record{.trial = trial.number,
                   .purpose = Purpose::confirm,
                   .round = round,
                   .nodes = nodes_of(point, Fidelity::whole)};
  record.id = store_.begin_run(trial.number, record.purpose, round, record.nodes);
  MeasuredRun run(problem_, *executor_, store_, record, order, program_);
  run.start();
  while (!run.poll(steady_now(), std::nullopt)) {
    listener_.tick({&run});
    if (!interrupt_.wait(executor_->poll_seconds())) continue;
    run.interrupt();
    break;
  }
  store_.end_run(run.record());
  run.forget();
  return run.record().outcome.has_value();
}

}  // namespace ridgeline::study
