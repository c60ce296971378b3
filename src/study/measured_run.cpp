#include "study/measured_run.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "spec/config.h"
#include "study/verdict.h"

namespace ridgeline::study {
namespace {

using search::Outcome;

constexpr size_t kLogTail = 8192;

std::filesystem::path folder_of(const StudyFile& file, int64_t run) {
  std::filesystem::path folder = std::filesystem::absolute(file.store).replace_extension(".runs");
  return folder / fmt::format("{:05}", run);
}

}  // namespace

double steady_now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

MeasuredRun::MeasuredRun(const Problem& problem, Executor& executor, StudyStore& store, RunRecord begun,
                         const MeasureOrder& order, const std::string& program)
    : problem_(problem),
      executor_(executor),
      store_(store),
      record_(std::move(begun)),
      order_(order),
      program_(program),
      folder_(folder_of(problem.file(), record_.id).string()) {
  if (problem.file().objective.energy == EnergySource::measured) meter_.emplace(problem.file().objective.energy_counters);
}

RunOrder MeasuredRun::run_order() const {
  const ExecutorSpec& executor = problem_.file().executor;
  std::vector<std::string> command = executor.command;
  if (command.empty()) command = {program_, "train"};
  command.push_back(folder_ + "/trial.toml");
  return {.run = record_.id,
          .study = store_.id(),
          .command = command,
          .folder = folder_,
          .log = folder_ + "/log.txt",
          .ranks = ranks(),
          .deadline_seconds = executor.deadline_seconds,
          .memory_limit_bytes = executor.memory_limit_gib * 1073741824.0};
}

void MeasuredRun::start() {
  try {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);  // of a tuner that was killed before it could start the run
    std::filesystem::create_directories(folder_ + "/run");
    std::ofstream config(folder_ + "/trial.toml");
    config << spec::to_toml(trial_config(problem_, order_.layout, order_.steps, folder_ + "/run"));
    config.close();
    if (!config) throw Failure("{}/trial.toml: cannot be written", folder_);
    record_.handle = executor_.start(run_order());
    store_.set_handle(record_.id, record_.handle);
  } catch (const std::filesystem::filesystem_error& error) {
    close(Outcome::infrastructure, error.what());
  } catch (const Failure& failure) {
    close(Outcome::infrastructure, failure.what());
  }
}

bool MeasuredRun::recover() {
  const auto handle = executor_.recover(run_order(), record_.handle);
  if (!handle) return false;
  record_.handle = *handle;
  store_.set_handle(record_.id, record_.handle);
  return true;
}

bool MeasuredRun::poll(double now, std::optional<double> bound) {
  if (!record_.is_open()) return true;  // it could not be started
  if (!watch_ && executor_.is_running(record_.handle)) {
    watch_.emplace(folder_ + "/run/metrics.jsonl", order_.limits, now);
    running_since_ = now;
  }
  const std::optional<Ending> ending = executor_.poll(record_.handle);
  if (ending && !watch_) watch_.emplace(folder_ + "/run/metrics.jsonl", order_.limits, now);
  const size_t steps_before = watch_ ? watch_->step_seconds().size() : 0;
  const RunWatch::Advice advice = watch_ ? watch_->look(now, bound) : RunWatch::Advice::go_on;
  // Power is that of steps: from the end of the first one that was seen to the end of the last.
  if (meter_ && watch_ && watch_->step_seconds().size() > steps_before) meter_->mark(now);
  if (ending && advice != RunWatch::Advice::diverged) {
    close(*ending);
    return true;
  }
  if (advice == RunWatch::Advice::go_on) return false;
  executor_.end(record_.handle);
  const ExecutorSpec& limits = problem_.file().executor;
  const size_t steps = watch_->step_seconds().size();
  switch (advice) {
    case RunWatch::Advice::enough:
      close(Outcome::ok, "");
      break;
    case RunWatch::Advice::hopeless:
      close(Outcome::stopped_early, "surely slower than the best");
      break;
    case RunWatch::Advice::diverged:
      close(Outcome::diverged, fmt::format("the loss is no number after step {}", steps));
      break;
    case RunWatch::Advice::silent:
      close(Outcome::timeout, fmt::format("no step within {} after step {} (executor.heartbeat_seconds)",
                                          format_duration(limits.heartbeat_seconds), steps));
      break;
    default:
      close(Outcome::timeout, fmt::format("{} steps within {} (executor.deadline_seconds)", steps,
                                          format_duration(limits.deadline_seconds)));
  }
  return true;
}

void MeasuredRun::close(const Ending& ending) {
  const bool ended_well = ending.exit_code == 0 && ending.signal == 0 && ending.fault.empty() && !ending.is_late;
  if (ended_well && watch_->state().steps > 0) return close(Outcome::ok, "");
  if (ended_well) {
    const std::string& fault = watch_->fault();
    return close(Outcome::crashed, fault.empty() ? "it ended without a finished step" : fault);
  }
  const Verdict verdict = verdict_of(ending, tail_of(folder_ + "/log.txt", kLogTail));
  record_.missing_bytes = verdict.missing_bytes;
  close(verdict.outcome, verdict.message);
}

void MeasuredRun::close(Outcome outcome, const std::string& message) {
  record_.outcome = outcome;
  record_.message = message;
  record_.ended_at = now_seconds();
  if (watch_) {
    record_.step_seconds = watch_->step_seconds();
    record_.dropped = static_cast<int64_t>(watch_->state().dropped);
    record_.peak_bytes = problem_.device_bytes(watch_->peak_bytes());
    if (meter_) record_.watts = meter_->mean_watts();
    if (outcome == Outcome::ok && meter_ && record_.watts == 0) {
      record_.outcome = Outcome::crashed;
      record_.message = "its steps ended too soon for its energy to be counted: raise measure.least_steps and measure.steps";
    }
  }
  if (outcome != Outcome::ok && outcome != Outcome::stopped_early) {
    record_.log_tail = tail_of(folder_ + "/log.txt", kLogTail);
  }
}

void MeasuredRun::interrupt() {
  if (is_started()) executor_.end(record_.handle);
  record_.ended_at = now_seconds();
  record_.message = "interrupted";
}

void MeasuredRun::forget() const { remove_run_folder(problem_.file(), record_.id); }

void remove_run_folder(const StudyFile& file, int64_t run) {
  if (file.executor.keep_folders) return;
  const std::filesystem::path folder = folder_of(file, run);
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  std::filesystem::remove(folder.parent_path(), ignored);  // where it is empty now
}

}  // namespace ridgeline::study
