#include "cli/study_runs.h"

#include <filesystem>

#include "cli/find_engine.h"
#include "core/error.h"
#include "study/energy_meter.h"

namespace ridgeline::cli {
namespace {

constexpr double kLockPatience = 10;  // a tuner that was just killed may still be on its way out

}  // namespace

std::string this_program() {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) throw Failure("cannot read /proc/self/exe: {}", error.message());
  return path.string();
}

std::unique_ptr<study::Executor> executor_of(const study::Problem& problem) {
  if (!problem.is_measured()) return nullptr;
  const study::ExecutorSpec& executor = problem.file().executor;
  if (executor.command.empty()) find_engine();  // rather now than in every trial
  if (problem.file().objective.energy == study::EnergySource::measured) {
    study::EnergyMeter(problem.file().objective.energy_counters);
  }
  std::unique_ptr<study::Executor> made;
  problem.file().sources.located([&] {
    made = study::make_executor({.kind = executor.kind,
                                 .slots = executor.slots,
                                 .devices_per_node = problem.machine().devices_per_node,
                                 .slurm_options = executor.slurm_options});
  });
  return made;
}

FileLock lock_store(const std::string& store) {
  return FileLock(store + ".lock", kLockPatience, [store](const std::string& owner) {
    return fmt::format("{}: another tuner is at work on this study ({}); wait for it or stop it", store, owner);
  });
}

}  // namespace ridgeline::cli
