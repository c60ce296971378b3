// Result: what the trials of a study say together.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "search/importance/importance.h"
#include "study/problem.h"
#include "study/records.h"

namespace ridgeline::study {

// A trial that was measured again, in turns with others.
struct Confirmation {
  int64_t trial = 0;
  std::vector<double> medians;  // seconds of a step, one a round that ended well
  std::vector<double> costs;    // of the median of these
};

struct Regret {
  int64_t place = 0;    // among the ends
  double best = 0;      // smallest cost of the first goal so far
  double excess = 0;    // over the smallest that is known, share of it
};

struct Agreement {  // of predictions with what was measured, over the trials that ended well
  size_t trials = 0;
  double mean_error = 0;           // of predicted / measured - 1
  double mean_absolute_error = 0;
  double kendall_tau = 0;          // of the order; 0 below two trials
};

struct Result {
  std::optional<TrialRecord> best;
  std::vector<Confirmation> confirmations;
  std::vector<TrialRecord> front;  // of several goals: trials that none is better than in all
  std::vector<Regret> regret;      // where the best changed, and the last end
  std::map<search::Outcome, int64_t> outcomes;
  Agreement agreement;
  search::Importance importance;          // of the first goal's cost
  search::Importance failure_importance;  // of failing; empty where none or all did
  int64_t ended = 0;
  int64_t running = 0;
};

Result result_of(const Problem& problem, const std::vector<TrialRecord>& trials, const std::vector<RunRecord>& runs);

// The cost of the best row of a replayed table for the first goal; nothing for other kinds.
std::optional<double> known_best(const Problem& problem);

// The config for `ridgeline train` with the best trial's strategy, and what was measured as a comment. Empty where no
// trial ended well, or where `train` cannot run the best yet.
std::string best_config(const Problem& problem, const Result& result);

}  // namespace ridgeline::study
