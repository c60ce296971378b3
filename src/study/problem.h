// Problem: the points of a study, what the simulator says of them, and what a trial of one of them costs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "search/tune/replay.h"
#include "search/tune/searcher.h"
#include "simulate/evaluator.h"
#include "spec/machine.h"
#include "study/records.h"
#include "study/study_file.h"

namespace ridgeline::study {

class Problem {
 public:
  // `train`: the config that file.model names, or a preset's. Throws InputError.
  Problem(StudyFile file, spec::TrainSpec train);

  const StudyFile& file() const { return file_; }
  const spec::TrainSpec& train() const { return train_; }
  const spec::Machine& machine() const { return machine_; }
  const search::PointSet& points() const { return *points_; }
  // One a point where a machine is named; what the search starts from unless it is blind.
  const std::vector<search::Guess>& predictions() const { return predictions_; }
  std::string identity() const;
  cost::Recipe recipe() const;  // whose way of running a step predictions assume

  search::Searcher make_searcher() const;
  double limit_bytes() const;  // of a device; 0: not known

  // Of a step of so many seconds, one a goal.
  std::vector<double> costs(size_t point, double seconds) const;
  // Seconds of a step at which the first goal has this cost.
  double seconds_at(size_t point, double cost) const;
  // What a device holds at a run's peak, from what the run's allocator counted.
  double device_bytes(double allocated) const;

  const search::Replay* replay() const { return replay_ ? &*replay_ : nullptr; }
  bool is_measured() const { return file_.objective.kind == ObjectiveKind::measured; }
  // The outcome of a trial that needs no process: kinds simulate and replay.
  search::Trial evaluate(size_t point);

  // A stored trial as a searcher is told it. Throws Failure where its point is none of this study.
  search::Trial told(const TrialRecord& record) const;
  size_t point_of(const TrialRecord& record) const;

 private:
  void check_power() const;

  StudyFile file_;
  spec::TrainSpec train_;
  spec::Machine machine_;
  std::optional<search::Replay> replay_;
  std::optional<search::PointSet> enumerated_;
  const search::PointSet* points_ = nullptr;
  std::optional<simulate::Evaluator> evaluator_;
  std::vector<search::Guess> predictions_;
};

// The config of a run: the study's, with the point's strategy, and nothing that a measurement does not need.
spec::TrainSpec trial_config(const Problem& problem, size_t point, int64_t steps, const std::string& run_folder);

}  // namespace ridgeline::study
