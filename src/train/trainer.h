// Trainer: one rank's part of a training run. Its step() is the whole of a training step, in order:
//
//   data -> pipeline schedule (forward, backward; buckets reduced, shards gathered meanwhile) -> finish reductions
//        -> loss and gradient norm (one small all-reduce) -> clip -> update -> gather parameters
//
// All ranks of the mesh must call the same methods in the same order.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "data/samples.h"
#include "mesh/mesh.h"
#include "optim/gradient_reduction.h"
#include "optim/loss_scale.h"
#include "optim/optimizer.h"
#include "spec/train.h"
#include "train/rank_model.h"

namespace ridgeline::train {

struct StepResult {
  double loss = 0.0;           // mean over the valid tokens of the global batch
  std::optional<double> auxiliary_loss;  // that routers add to it, where the model has experts
  double gradient_norm = 0.0;  // global, before clipping
  double learning_rate = 0.0;
  bool skipped = false;         // fp16: gradients overflowed, parameters are unchanged and the loss scale was lowered
  bool stop_requested = false;  // some rank was asked to stop
};

class Trainer {
 public:
  // Builds the stage of this rank with initial values. `spec.strategy` must have been derived (derive_data).
  Trainer(const spec::TrainSpec& spec, const mesh::Mesh& mesh, const data::SampleSource& source);

  // Optimizer step `number`, from 0. `stop_requested` of any rank is seen by all in the result.
  StepResult step(int64_t number, bool stop_requested = false);

  // Mean loss over the first `samples` held-out samples, by the same loss code.
  double evaluate(int64_t samples) { return model_.evaluate(samples); }

  // Saves as `step` finished steps; returns after rank 0 has published. Collective.
  void save(const std::filesystem::path& folder, int64_t finished_steps);
  // Loads the newest complete checkpoint of `folder`, in whatever layout it was written; returns its finished steps, or
  // nothing where there is none. Collective.
  std::optional<int64_t> resume(const std::filesystem::path& folder);
  // The same for one checkpoint, which must be complete. Collective.
  void load(const std::filesystem::path& checkpoint);

  // Takes the weights of a folder in Hugging Face's form in place of the initial ones. Collective.
  void start_from(const std::filesystem::path& folder);
  // Compares all copies of parameters (train/replica_check.h); throws Failure where they differ. Collective.
  void check_replicas(int64_t finished_steps) const;

  int64_t consumed_samples() const { return consumed_samples_; }
  double loss_scale() const { return loss_scale_.scale(); }
  // The config, as TOML, that the checkpoint was written under; empty where nothing was resumed.
  const std::string& resumed_config() const { return resumed_config_; }

  // Called after each action of the schedule, and after each other phase of a step, from now on. Together they are the
  // whole step: what a call names began when the one before it was made.
  void observe_actions(PipelineExecutor::ActionDone done) { model_.executor().observe(std::move(done)); }
  using PhaseDone = std::function<void(const char* phase)>;
  void observe_phases(PhaseDone done) { phase_done_ = std::move(done); }

  const nn::FlatParameters& parameters() const { return model_.parameters(); }
  const optim::Optimizer& optimizer() const { return *optimizer_; }
  const std::vector<spec::StageUnits>& stages() const { return model_.stages(); }

 private:
  void over(const char* phase) const {
    if (phase_done_) phase_done_(phase);
  }

  spec::TrainSpec spec_;
  const mesh::Mesh& mesh_;
  schedule::Schedule schedule_;
  RankModel model_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::unique_ptr<optim::GradientReduction> reduction_;
  optim::LossScale loss_scale_;
  PhaseDone phase_done_;
  int64_t consumed_samples_ = 0;  // number of the next training sample
  std::string resumed_config_;
  int64_t updates_ = 0;  // steps that were not skipped; what AdamW's bias correction counts
};

}  // namespace ridgeline::train
