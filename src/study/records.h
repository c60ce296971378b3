// What a study remembers: its trials, and the runs that measured them. Times are seconds since 1970.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "search/tune/transfer.h"
#include "search/tune/trial.h"

namespace ridgeline::study {

enum class Purpose { search, confirm };

// One execution of a trial's strategy: a trial has several where infrastructure failed or the tuner was killed, and one
// more a round where it was confirmed.
struct RunRecord {
  int64_t id = 0;     // of the study
  int64_t trial = 0;  // its trial's number
  Purpose purpose = Purpose::search;
  int64_t round = 0;  // of the confirmation
  int64_t nodes = 1;
  double started_at = 0;
  std::string handle = {};  // what its executor knows it by; empty until it was started
  std::optional<double> ended_at = {};
  std::optional<search::Outcome> outcome = {};  // none: still running, or interrupted
  std::vector<double> step_seconds = {};
  int64_t dropped = 0;  // first steps that were warm-up
  double peak_bytes = 0;
  double missing_bytes = 0;
  double watts = 0;           // mean over its steady steps, of all its devices; 0: not measured
  std::string message = {};   // why it failed
  std::string log_tail = {};  // of a failure

  bool is_open() const { return !ended_at; }
};

struct TrialRecord {
  int64_t number = 0;  // from 1, in the order of starts
  std::string point = {};   // key of search::PointSet
  std::vector<double> predicted_costs = {};
  double predicted_bytes = 0;
  double asked_at = 0;
  std::optional<int64_t> place = {};  // from 1, in the order of ends: what a searcher is told; none: not ended
  double ended_at = 0;
  search::Outcome outcome = search::Outcome::ok;
  std::vector<double> costs = {};
  double peak_bytes = 0;
  double missing_bytes = 0;
  std::string message = {};
  std::string inherited = {};  // the earlier study's file that it was taken from; empty: tried by this one

  bool has_ended() const { return place.has_value(); }
};

// What a study begins with.
struct Beginning {
  double limit_bytes = 0;               // of a device; 0: not known
  std::vector<TrialRecord> known = {};  // ended trials of earlier studies of the same problem
  std::vector<search::EarlierTrial> earlier = {};
};

}  // namespace ridgeline::study
