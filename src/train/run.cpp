#include "train/run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "core/text.h"
#include "cost/flops.h"
#include "platform/peak.h"
#include "spec/config.h"
#include "train/preflight.h"
#include "train/process_age.h"
#include "train/stop_signal.h"

namespace ridgeline::train {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Run::Run(const spec::TrainSpec& spec, Trainer& trainer, const mesh::Mesh& mesh, const platform::Device& device,
         mesh::Watchdog& watchdog, std::optional<double> planned_step_seconds)
    : spec_(spec),
      trainer_(trainer),
      mesh_(mesh),
      device_(device),
      watchdog_(watchdog),
      folder_(spec.training.run),
      step_flops_(cost::step_model_flops(spec.model, spec.strategy)),
      step_hardware_flops_(cost::step_hardware_flops(spec.model, spec.strategy)),
      device_peak_(platform::peak_flops(device.name(), spec.precision.compute)),
      reports_(mesh.world().rank() == 0),
      eta_(spec, planned_step_seconds) {
  const auto steps = spec::profile_range(spec.training);
  if (!steps) return;
  profile_ = std::make_unique<StepProfile>(mesh, device, *steps);
  trainer.observe_actions([this](const schedule::Action& action) { profile_->action(action); });
  trainer.observe_phases([this](const char* phase) { profile_->phase(phase); });
}

int64_t Run::start() {
  if (!spec_.model_from.empty()) {
    trainer_.start_from(spec_.model_from);
    spdlog::info("started from the weights of {}", spec_.model_from);
  }
  return 0;
}

int64_t Run::resume() {
  if (!spec_.checkpoint.resume) return start();
  const std::optional<int64_t> finished = trainer_.resume(folder_ / "checkpoints");
  if (!finished) return start();
  last_saved_ = *finished;
  spdlog::info("resumed after step {} of {}", *finished, spec_.training.steps);
  for (const std::string& change : changed_keys(trainer_.resumed_config(), spec::to_saved_toml(spec_))) {
    spdlog::info("changed since the checkpoint: {}", change);
  }
  return *finished;
}

void Run::open_reports(int64_t finished_steps) {
  if (!reports_) return;
  std::ofstream(folder_ / "config.toml") << spec::to_toml(spec_);
  metrics_file_ = std::make_unique<report::MetricsFile>((folder_ / "metrics.jsonl").string(), finished_steps);
  events_ = std::make_unique<report::EventFile>(folder_.string(), finished_steps);
  progress_ = std::make_unique<report::Progress>();
}

int64_t Run::fullest_peak() const {
  const at::Tensor peak =
      at::full({1}, device_.peak_bytes(), at::TensorOptions().dtype(at::kLong).device(device_.torch()));
  mesh_.world().all_reduce(peak, mesh::Reduction::max).wait();
  return peak.item<int64_t>();
}

report::StepMetrics Run::metrics_of(const StepResult& result, int64_t finished_steps, double seconds) const {
  report::StepMetrics metrics;
  metrics.step = finished_steps;
  metrics.tokens = trainer_.consumed_samples() * spec_.model.sequence;
  metrics.loss = result.loss;
  metrics.grad_norm = result.gradient_norm;
  metrics.lr = result.learning_rate;
  metrics.step_seconds = seconds;
  metrics.tokens_per_second = static_cast<double>(spec_.strategy.global_batch * spec_.model.sequence) / seconds;
  const double devices = static_cast<double>(spec_.strategy.ranks());
  metrics.tflops_per_device = step_flops_ / seconds / devices / 1e12;
  if (device_peak_) {
    const double hfu = step_hardware_flops_ / seconds / devices / *device_peak_;
    // A rate above the peak is a fault of measurement (a clock, a peak of another device), never a result.
    if (hfu <= 1.0) {
      metrics.mfu = step_flops_ / seconds / devices / *device_peak_;
      metrics.hfu = hfu;
    } else if (reports_) {
      spdlog::warn("step {}: measured {:.0f} TFLOP/s a device, above the {:.0f} that {} can do: MFU is left out",
                   finished_steps, hfu * *device_peak_ / 1e12, *device_peak_ / 1e12, device_.name());
    }
  }
  if (spec_.precision.compute == spec::Precision::fp16) metrics.loss_scale = trainer_.loss_scale();
  metrics.skipped = result.skipped;
  return metrics;
}

bool Run::evaluates_after(int64_t finished_steps) const {
  const int64_t every = spec_.evaluation.every;
  return every > 0 && (finished_steps % every == 0 || finished_steps == spec_.training.steps);
}

double Run::evaluate(int64_t finished_steps) {
  watchdog_.progress(finished_steps, "evaluation");
  const double loss = trainer_.evaluate(spec_.evaluation.samples);
  spdlog::info("step {}: held-out loss {:.4f} (perplexity {:.2f}, {} samples)", finished_steps, loss, std::exp(loss),
               spec_.evaluation.samples);
  return loss;
}

void Run::save(int64_t finished_steps) {
  if (last_saved_ == finished_steps) return;
  watchdog_.progress(finished_steps, "checkpoint");
  const auto start = std::chrono::steady_clock::now();
  trainer_.save(folder_ / "checkpoints", finished_steps);
  last_saved_ = finished_steps;
  save_seconds_ = seconds_since(start);
  spdlog::info("step {}: saved in {}", finished_steps, format_duration(*save_seconds_));
}

void Run::time_pause(report::StepMetrics& metrics, std::chrono::steady_clock::time_point start) {
  if (step_end_) {
    metrics.pause_seconds = std::chrono::duration<double>(start - *step_end_).count();
    metrics.save_seconds = std::exchange(save_seconds_, std::nullopt);
  } else {
    metrics.start_seconds = process_age_seconds() - seconds_since(start);
  }
  step_end_ = start + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                          std::chrono::duration<double>(metrics.step_seconds));
}

void Run::report_step(report::StepMetrics metrics) {
  if (!reports_) return;
  metrics_file_->append(metrics);
  events_->step_metrics(metrics);
  eta_.add(metrics);
  if (const auto departure = eta_.departure()) spdlog::warn("step {}: {}", metrics.step, *departure);
  if (metrics.step % spec_.training.log_every == 0 || metrics.step == spec_.training.steps) {
    progress_->update({metrics, spec_.training.steps, eta_.seconds_left()});
  }
}

StepResult Run::step(int64_t finished_steps) {
  if (profile_) profile_->begin(finished_steps + 1);
  const StepResult result = trainer_.step(finished_steps, StopSignal::requested());
  device_.synchronize();
  if (profile_ && profile_->end(finished_steps + 1)) {
    std::string steps = spec_.training.profile_steps;
    std::replace(steps.begin(), steps.end(), ':', '-');
    const std::filesystem::path path = folder_ / ("trace-steps-" + steps + ".json");
    profile_->write(path);
    if (reports_) spdlog::info("wrote {}: open it at ui.perfetto.dev", path.string());
  }
  return result;
}

bool Run::execute() {
  int64_t finished = resume();
  open_reports(finished);
  if (finished >= spec_.training.steps) {
    spdlog::info("all {} steps are done; raise training.steps to go on", spec_.training.steps);
    return true;
  }
  if (finished == 0 && spec_.evaluation.every > 0) evaluate(0);
  device_.reset_peak();
  StopSignal::training_begins();
  while (finished < spec_.training.steps) {
    watchdog_.progress(finished + 1, "training step");
    const auto start = std::chrono::steady_clock::now();
    const StepResult result = step(finished);
    ++finished;
    report::StepMetrics metrics = metrics_of(result, finished, seconds_since(start));
    time_pause(metrics, start);
    metrics.peak_memory = fullest_peak();
    if (evaluates_after(finished)) {
      const auto evaluation = std::chrono::steady_clock::now();
      metrics.validation_loss = evaluate(finished);
      metrics.evaluation_seconds = seconds_since(evaluation);
    }
    report_step(metrics);
    const int64_t check = spec_.training.check_replicas;
    if (check > 0 && finished % check == 0) trainer_.check_replicas(finished);  // before what is wrong is saved
    const int64_t every = spec_.checkpoint.every;
    if (result.stop_requested || (every > 0 && finished % every == 0)) save(finished);
    if (result.stop_requested) {
      if (reports_) spdlog::warn("asked to stop: saved after step {}; the same command continues", finished);
      return finished == spec_.training.steps;
    }
  }
  if (spec_.checkpoint.at_end) save(finished);
  if (progress_) progress_->finish();
  return true;
}

}  // namespace ridgeline::train
