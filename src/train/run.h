// Run: the loop around a Trainer. Steps, evaluations, checkpoints, metrics and progress of one training run, from the
// state that the run folder holds to training.steps.
//
//   RUN/config.toml      the complete config of the last start
//   RUN/metrics.jsonl    a line a step
//   RUN/events.out.*     the same for TensorBoard
//   RUN/checkpoints/     step-00000100/ ...
//   RUN/trace-steps-*    where training.profile_steps asks for one (train/step_profile.h)
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>

#include "mesh/watchdog.h"
#include "platform/device.h"
#include "project/eta.h"
#include "report/metrics.h"
#include "report/progress.h"
#include "report/tensorboard.h"
#include "train/step_profile.h"
#include "train/trainer.h"

namespace ridgeline::train {

class Run {
 public:
  // `planned_step_seconds`: the prediction that the run is compared with, where there is one.
  Run(const spec::TrainSpec& spec, Trainer& trainer, const mesh::Mesh& mesh, const platform::Device& device,
      mesh::Watchdog& watchdog, std::optional<double> planned_step_seconds);

  // Resumes and trains to the end. Returns false where a signal asked to stop before; the run was saved then.
  bool execute();

 private:
  // Returns the steps that are finished.
  int64_t resume();
  int64_t start();
  void open_reports(int64_t finished_steps);
  report::StepMetrics metrics_of(const StepResult& result, int64_t finished_steps, double seconds) const;
  // Peak memory of the fullest rank.
  int64_t fullest_peak() const;
  bool evaluates_after(int64_t finished_steps) const;
  double evaluate(int64_t finished_steps);
  void save(int64_t finished_steps);
  StepResult step(int64_t finished_steps);
  // Seconds of the start, or of the pause since the step before.
  void time_pause(report::StepMetrics& metrics, std::chrono::steady_clock::time_point start);
  void report_step(report::StepMetrics metrics);

  const spec::TrainSpec& spec_;
  Trainer& trainer_;
  const mesh::Mesh& mesh_;
  const platform::Device& device_;
  mesh::Watchdog& watchdog_;
  std::filesystem::path folder_;
  double step_flops_;  // model FLOPs of a step over all devices
  double step_hardware_flops_;
  std::optional<double> device_peak_;  // FLOP/s
  bool reports_;                       // on rank 0
  int64_t last_saved_ = -1;
  std::optional<std::chrono::steady_clock::time_point> step_end_;  // of the step before, in this start
  std::optional<double> save_seconds_;                             // since then
  project::Eta eta_;
  std::unique_ptr<report::MetricsFile> metrics_file_;
  std::unique_ptr<report::EventFile> events_;
  std::unique_ptr<report::Progress> progress_;
  std::unique_ptr<StepProfile> profile_;
};

}  // namespace ridgeline::train
