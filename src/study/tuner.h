// Tuner: asks for points (study/suggestions.h), has them tried, tells it what they cost, and keeps all of it in the store.
//
// Started again on the same store it goes on: ended trials are told in the order of their ends, those under way are
// pending and run anew (or are taken up, where their executor has kept them), so that the next suggestion is the one that
// would have been made.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "study/interrupt.h"
#include "study/measured_run.h"
#include "study/suggestions.h"

namespace ridgeline::study {

// What is to be shown of a tuner at work. All calls come from its thread.
class TuneListener {
 public:
  virtual ~TuneListener() = default;
  // `trials`: all that the store holds.
  virtual void resumed(const std::vector<TrialRecord>& trials) = 0;
  virtual void started(const TrialRecord& trial, const search::Point& point) = 0;
  virtual void retried(const TrialRecord& trial, const std::string& why) = 0;
  virtual void ended(const TrialRecord& trial, const search::Point& point) = 0;
  virtual void confirming(const TrialRecord& trial, int64_t round) = 0;
  virtual void tick(const std::vector<const MeasuredRun*>& running) = 0;
};

enum class TuneEnd { budget, exhausted, interrupted };

class Tuner {
 public:
  // `executor` may be null where the objective needs no processes. `program`: path of `ridgeline`.
  Tuner(Problem& problem, StudyStore& store, std::unique_ptr<Suggestions> suggestions, Executor* executor,
        TuneListener& listener, std::string program);

  TuneEnd run();

 private:
  struct Active {
    TrialRecord trial;
    std::unique_ptr<MeasuredRun> run;
    int64_t attempts;  // that infrastructure has ended
  };

  void restore();
  void restore_open(const TrialRecord& trial, const std::vector<RunRecord>& runs);
  TuneEnd search_in_process();
  TuneEnd search_measured();
  bool within_budget();
  TrialRecord next_trial(size_t point) const;
  void begin(size_t point);
  std::unique_ptr<MeasuredRun> make_run(const RunRecord& begun, size_t point, Fidelity fidelity = Fidelity::cheap);
  void add_active(const TrialRecord& trial, const RunRecord& run, int64_t attempts);
  bool advance(Active& active);
  void finish(Active& active);
  void retry(Active& active);
  std::optional<double> bound_of(size_t point) const;
  void count(const TrialRecord& trial);
  TuneEnd confirm();
  bool is_confirmed(const TrialRecord& trial, int64_t round);
  bool confirm_once(const TrialRecord& trial, int64_t round);
  void interrupt_all();
  void show();
  MeasureOrder order_of(size_t point, Fidelity fidelity) const;
  int64_t nodes_of(size_t point, Fidelity fidelity) const;
  void take_result(const MeasuredRun& run, TrialRecord& trial) const;

  Problem& problem_;
  StudyStore& store_;
  Executor* executor_;
  TuneListener& listener_;
  std::string program_;
  std::unique_ptr<Suggestions> suggestions_;
  Interrupt interrupt_;
  std::vector<TrialRecord> trials_;  // all, by number
  std::vector<Active> active_;
  std::optional<double> best_cost_;  // of the first goal
};

// Trials that ended well, the cheapest first.
std::vector<TrialRecord> ranked(const std::vector<TrialRecord>& trials);

}  // namespace ridgeline::study
