#include "train/trainer.h"

#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>

#include "checkpoint/step_folder.h"
#include "checkpoint/store.h"
#include "core/error.h"
#include "core/log.h"
#include "cost/step_schedule.h"
#include "optim/learning_rate.h"
#include "schedule/check.h"
#include "spec/config.h"
#include "train/checkpointing.h"
#include "train/replica_check.h"

namespace ridgeline::train {

namespace {

// Proven before anything is allocated: lists may come from a file.
schedule::Schedule checked_schedule(const spec::TrainSpec& spec) {
  schedule::Schedule schedule = cost::step_schedule(spec.model, spec.strategy);
  schedule::check(schedule);
  return schedule;
}

optim::Balance balance_of(const spec::TrainSpec& spec) {
  const spec::ModelSpec& model = spec.model;
  if (model.experts == 0) return {};
  const double picks = static_cast<double>(spec.strategy.global_batch * model.sequence * model.experts_per_token);
  return {model.router_bias_rate, picks / static_cast<double>(model.experts)};
}

}  // namespace

Trainer::Trainer(const spec::TrainSpec& spec, const mesh::Mesh& mesh, const data::SampleSource& source)
    : spec_(spec),
      mesh_(mesh),
      schedule_(checked_schedule(spec_)),
      model_(spec_, mesh, source, nn::Gradients::kept),
      loss_scale_(spec_.precision) {
  const c10::InferenceMode no_autograd;
  optimizer_ = std::make_unique<optim::Optimizer>(model_.parameters(), mesh, spec_.strategy, spec_.optimizer,
                                                  balance_of(spec_));
  reduction_ = std::make_unique<optim::GradientReduction>(model_.parameters(), mesh, spec_.strategy);
  model_.parameters().initialise(spec_.training.seed,
                                 [&](const spec::FlatEntry& entry, const spec::Range& flat, const at::Tensor& value) {
                                   optimizer_->set_master(entry, flat, value);
                                 });
}

StepResult Trainer::step(int64_t number, bool stop_requested) {
  const c10::InferenceMode no_autograd;
  const spec::Strategy& strategy = spec_.strategy;
  // Every window is full, so every token of the global batch is a valid target.
  const double valid_tokens = static_cast<double>(strategy.global_batch * spec_.model.sequence);
  const double scale = loss_scale_.scale();
  optimizer_->zero_gradients();
  const at::Tensor& auxiliary_loss = model_.auxiliary_loss();
  if (auxiliary_loss.defined()) auxiliary_loss.zero_();
  over("zero gradients");
  const at::Tensor loss_sum = model_.executor().run(
      schedule_,
      [&](int64_t index) { return model_.batches().training(number, consumed_samples_, index, scale / valid_tokens); },
      [&](int64_t unit) { reduction_->unit_finished(unit); });
  if (optim::UnitShards* shards = model_.unit_shards()) shards->finish_gradients();
  reduction_->finish();
  over("finish gradient reductions");

  // The ranks of a tensor axis hold equal loss sums; each counts its share.
  const std::vector<double> sums = model_.sum_over_world(
      at::cat({optimizer_->gradient_square_sum().view({1}), loss_sum.div(static_cast<double>(strategy.tensor)),
               at::full({1}, stop_requested ? 1.0 : 0.0, loss_sum.options()),
               auxiliary_loss.defined() ? auxiliary_loss : at::zeros({1}, loss_sum.options())}));
  over("loss and gradient norm");
  StepResult result;
  result.gradient_norm = std::sqrt(sums[0]) / scale;
  result.loss = sums[1] / valid_tokens;
  result.stop_requested = sums[2] > 0;
  if (auxiliary_loss.defined()) result.auxiliary_loss = sums[3] / valid_tokens;
  result.learning_rate = optim::learning_rate(spec_.optimizer, spec_.training.steps, number);

  const bool finite = std::isfinite(sums[0]);
  if (!finite && spec_.precision.compute != spec::Precision::fp16) {
    throw Failure(
        "step {}: the gradient norm is {} (loss {}). The parameters were not changed; the last checkpoint is "
        "good. Lower optimizer.lr, lengthen optimizer.warmup_steps or check the data",
        number + 1, result.gradient_norm, result.loss);
  }
  consumed_samples_ += strategy.global_batch;
  loss_scale_.update(!finite);
  result.skipped = !finite;
  if (finite) {
    const double clip = spec_.optimizer.clip;
    const double shrink = clip > 0 ? std::min(1.0, clip / (result.gradient_norm + 1e-6)) : 1.0;
    optimizer_->step(updates_++, result.learning_rate, shrink / scale);
    model_.values_changed();
    over("update parameters");
  }
  return result;
}

void Trainer::check_replicas(int64_t finished_steps) const {
  const c10::InferenceMode no_autograd;
  train::check_replicas(model_.parameters(), mesh_, finished_steps);
}

void Trainer::save(const std::filesystem::path& folder, int64_t finished_steps) {
  const c10::InferenceMode no_autograd;
  const int64_t rank = mesh_.world().rank();
  write_state(folder, finished_steps, rank, model_.parameters(), *optimizer_);
  mesh_.world().barrier().wait();
  if (rank == 0) {
    checkpoint::Progress progress;
    progress.consumed_samples = consumed_samples_;
    progress.state = {
        {"loss_scale", loss_scale_.state()}, {"updates", updates_}, {"config", spec::to_saved_toml(spec_)}};
    checkpoint::publish(folder, finished_steps, mesh_.world().size(), progress);
    checkpoint::prune(folder, spec_.checkpoint.keep);
  }
  mesh_.world().barrier().wait();
}

std::optional<int64_t> Trainer::resume(const std::filesystem::path& folder) {
  const c10::InferenceMode no_autograd;
  // Rank 0 decides, so that all load the same one even where a file system shows it late.
  at::Tensor chosen = at::full({2}, -1, at::TensorOptions().dtype(at::kLong).device(mesh_.device().torch()));
  if (mesh_.world().rank() == 0) {
    const auto newest = checkpoint::newest_complete(folder, [](const std::string& why) { spdlog::warn("{}", why); });
    if (newest) {
      // A crash between two renames leaves a whole checkpoint under its other name.
      const auto name = checkpoint::parse_step_folder(newest->filename().string());
      if (!name) throw InternalError("no name of a checkpoint: {}", newest->string());
      chosen[0].fill_(name->step);
      chosen[1].fill_(static_cast<int64_t>(name->state));
    }
  }
  mesh_.world().broadcast(chosen, 0).wait();
  const int64_t step = chosen[0].item<int64_t>();
  if (step < 0) return std::nullopt;
  load(folder / checkpoint::step_folder_name(step, static_cast<checkpoint::FolderState>(chosen[1].item<int64_t>())));
  return step;
}

void Trainer::load(const std::filesystem::path& checkpoint) {
  const c10::InferenceMode no_autograd;
  checkpoint::CheckpointReader reader(checkpoint);
  const auto& state = reader.manifest().state;
  for (const char* key : {"updates", "config"}) {
    if (!state.contains(key)) {
      throw InputError(
          "{}: manifest.json has no state.{}: it was not written by `ridgeline train`; use another checkpoint",
          checkpoint.string(), key);
    }
  }
  read_state(reader, model_.parameters(), *optimizer_);
  model_.values_changed();
  // Imported weights (checkpoint/hugging_face/convert.h) have had no step.
  if (state.contains("loss_scale")) loss_scale_.restore(state.at("loss_scale"));
  updates_ = state.at("updates").get<int64_t>();
  consumed_samples_ = reader.manifest().consumed_samples;
  resumed_config_ = state.at("config").get<std::string>();
  mesh_.world().barrier().wait();
}

void Trainer::start_from(const std::filesystem::path& folder) {
  const c10::InferenceMode no_autograd;
  const checkpoint::HuggingFaceReader weights(folder, spec_.model);
  read_weights(weights, model_.parameters(), *optimizer_);
  model_.values_changed();
  mesh_.world().barrier().wait();
}

}  // namespace ridgeline::train
