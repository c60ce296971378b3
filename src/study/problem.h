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

// A point as a trial runs it: whole, or at the study's [fidelity], and by how much the whole is predicted to take more.
struct Layout {
  spec::ModelSpec model;
  spec::Strategy strategy;
  int64_t devices = 1;
  double seconds_ratio = 1;  // whole / as run
  double bytes_ratio = 1;
  bool is_whole() const { return seconds_ratio == 1 && bytes_ratio == 1; }
};

enum class Fidelity { whole, cheap };

class Problem {
 public:
  // `train`: the config that file.model names, or a preset's. Throws InputError.
  Problem(StudyFile file, spec::TrainSpec train);
  // With these points in place of those that file.space holds.
  Problem(StudyFile file, spec::TrainSpec train, std::vector<search::Point> points);

  const StudyFile& file() const { return file_; }
  const spec::TrainSpec& train() const { return train_; }
  const spec::Machine& machine() const { return machine_; }
  const search::PointSet& points() const { return *points_; }
  // One a point where a machine is named; what the search starts from unless it is blind.
  const std::vector<search::Guess>& predictions() const { return predictions_; }
  // What the simulator says of a point; nothing without a machine.
  std::optional<simulate::Prediction> prediction(size_t point) const;
  std::string identity() const;
  cost::Recipe recipe() const;  // whose way of running a step predictions assume

  search::Searcher make_searcher(const std::vector<search::EarlierTrial>& earlier) const;
  double limit_bytes() const;  // of a device; 0: not known

  // Of a step of so many seconds, one a goal. `watts`: of all devices together, where it was measured.
  std::vector<double> costs(size_t point, double seconds, double watts = 0) const;
  // Seconds of a step at which the first goal has this cost.
  double seconds_at(size_t point, double cost) const;
  // What a device holds at a run's peak, from what the run's allocator counted.
  double device_bytes(double allocated) const;

  const search::Replay* replay() const { return replay_ ? &*replay_ : nullptr; }
  bool is_measured() const { return file_.objective.kind == ObjectiveKind::measured; }
  // The outcome of a trial that needs no process: kinds simulate and replay.
  search::Trial evaluate(size_t point) const;

  // A stored trial as a searcher is told it. Throws Failure where its point is none of this study.
  // With Fidelity::cheap the whole where the study has no [fidelity], or where its run is not legal or needs more memory.
  Layout layout(size_t point, Fidelity fidelity) const;
  bool has_cheap_trials() const { return file_.fidelity.is_cheap(); }

  search::Trial told(const TrialRecord& record) const;
  size_t point_of(const TrialRecord& record) const;

 private:
  void find_points();
  void prepare();
  void check_power() const;
  Layout cheap_layout(size_t point) const;

  StudyFile file_;
  spec::TrainSpec train_;
  spec::Machine machine_;
  std::optional<search::Replay> replay_;
  std::optional<search::PointSet> enumerated_;
  const search::PointSet* points_ = nullptr;
  mutable std::optional<simulate::Evaluator> evaluator_;  // keeps what it has evaluated
  mutable std::optional<simulate::Evaluator> cheap_evaluator_;  // of the model with [fidelity]'s layers
  std::vector<search::Guess> predictions_;
};

// The config of a run: the study's, with what is to run, and nothing that a measurement does not need.
spec::TrainSpec trial_config(const Problem& problem, const Layout& layout, int64_t steps, const std::string& run_folder);

}  // namespace ridgeline::study
