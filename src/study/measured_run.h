// MeasuredRun: one execution of a point's strategy, from its folder to its record.
#pragma once

#include <string>

#include "study/energy_meter.h"
#include "study/executor.h"
#include "study/problem.h"
#include "study/run_watch.h"
#include "study/store.h"

namespace ridgeline::study {

struct MeasureOrder {
  size_t point = 0;
  Layout layout;  // of the point
  int64_t steps = 40;
  WatchLimits limits = {};
};

class MeasuredRun {
 public:
  // `begun`: its record as the store holds it. `program`: path of `ridgeline`.
  MeasuredRun(const Problem& problem, Executor& executor, StudyStore& store, RunRecord begun, const MeasureOrder& order,
              const std::string& program);

  size_t point() const { return order_.point; }
  const Layout& layout() const { return order_.layout; }
  const RunRecord& record() const { return record_; }
  const RunWatch* watch() const { return watch_ ? &*watch_ : nullptr; }
  double running_seconds(double now) const { return watch_ ? now - running_since_ : 0; }
  bool is_started() const { return !record_.handle.empty(); }
  bool can_start() const { return executor_.has_room(ranks()); }

  // Writes the config and starts it. What cannot be started ends the run at once, as infrastructure.
  void start();
  // Takes up a run of an earlier tuner; false where that is gone, with all that it left.
  bool recover();
  // Whether it has ended: then the record says how. `bound`: seconds of a step above which it is
  // hopeless.
  bool poll(double now, std::optional<double> bound);
  // Ends it without an outcome: it will have to be run again.
  void interrupt();
  // Once the record is stored: removes its folder, unless the study keeps them.
  void forget() const;

 private:
  int64_t ranks() const { return order_.layout.devices; }
  RunOrder run_order() const;
  void close(search::Outcome outcome, const std::string& message);
  void close(const Ending& ending);

  const Problem& problem_;
  Executor& executor_;
  StudyStore& store_;
  RunRecord record_;
  MeasureOrder order_;
  std::string program_;
  std::string folder_;
  std::optional<RunWatch> watch_;  // once it runs
  double running_since_ = 0;
  std::optional<EnergyMeter> meter_;  // where the study counts energy by it
};

// Of a run whose end is stored: what a tuner that was killed just then has left of it.
void remove_run_folder(const StudyFile& file, int64_t run);

double steady_now();  // seconds of a clock that only goes forward

}  // namespace ridgeline::study
