#include "doctor/checks.h"

#include <fmt/format.h>

#include <cstdlib>

#include "core/error.h"
#include "core/text.h"

namespace ridgeline::doctor {
namespace {

constexpr int64_t kMiB = 1 << 20;

// Ranks of one machine talk through rings in /dev/shm; torch's own collectives and NCCL put theirs there too.
// Containers come with 64 MiB.
constexpr int64_t kSharedMemoryWanted = 512 * kMiB;
constexpr int64_t kOpenFilesWanted = 4096;

std::vector<Finding> check_shared_memory(const Host& host) {
  const std::string advice = "In a container start it with --shm-size=8g (or --ipc=host); else enlarge /dev/shm";
  if (host.shared_memory_bytes == 0) {
    return {{Grade::problem, "memory", "no /dev/shm: ranks of this machine cannot share memory", advice}};
  }
  const std::string text =
      fmt::format("{} free in /dev/shm", format_bytes(static_cast<double>(host.shared_memory_bytes)));
  if (host.shared_memory_bytes < kSharedMemoryWanted) return {{Grade::note, "memory", text, advice}};
  return {{Grade::good, "memory", text, ""}};
}

}  // namespace

std::string to_string(Grade grade) {
  switch (grade) {
    case Grade::good:
      return "ok";
    case Grade::note:
      return "note";
    case Grade::problem:
      return "problem";
  }
  throw InternalError("grade {}", static_cast<int>(grade));
}

std::vector<Finding> check_engine(const EngineFacts& engine) {
  if (engine.fault.empty()) return {{Grade::good, "engine", "libtorch " + engine.torch, ""}};
  return {{Grade::problem, "engine", engine.fault,
           "`plan`, `simulate` and reports work without it; for `train` run scripts/set-up, or set RIDGELINE_ENGINE to "
           "the path of ridgeline-engine"}};
}

std::vector<Finding> check_memory(const Host& host) {
  std::vector<Finding> findings = {
      {Grade::good, "memory", format_bytes(static_cast<double>(host.memory_bytes)) + " may be used", ""}};
  for (const Finding& finding : check_shared_memory(host)) findings.push_back(finding);
  if (host.open_files < kOpenFilesWanted) {
    findings.push_back({Grade::note, "limits", fmt::format("a process may have {} files open", host.open_files),
                        fmt::format("Many ranks need a connection each: `ulimit -n {}`", 16 * kOpenFilesWanted)});
  }
  return findings;
}

std::vector<Finding> check_threads(const Host& host) {
  std::vector<Finding> findings = {{Grade::good, "cores", fmt::format("{} may be used", host.usable_cores), ""}};
  const auto threads = host.variable("OMP_NUM_THREADS");
  if (threads && std::strtoll(threads->c_str(), nullptr, 10) > host.usable_cores) {
    findings.push_back({Grade::note, "cores", fmt::format("OMP_NUM_THREADS is {}, more than there are cores", *threads),
                        "Unset it: Ridgeline divides the cores among the ranks of a machine (training.threads)"});
  }
  return findings;
}

std::vector<Finding> check_launcher(const Host& host) {
  std::vector<Finding> findings;
  try {
    const launch::RankEnvironment environment = launch::detect(host.variable);
    findings.push_back({Grade::good, "launcher", "this process is " + launch::describe(environment), ""});
    if (!environment.note.empty()) findings.push_back({Grade::note, "launcher", environment.note, ""});
  } catch (const InputError& error) {
    findings.push_back({Grade::problem, "launcher", error.what(),
                        "Unset those variables, or start ranks with torchrun, srun, mpirun or --nproc"});
  }
  std::vector<std::string> found;
  for (const char* name : {"torchrun", "srun", "mpirun"}) {
    if (host.program(name)) found.push_back(name);
  }
  findings.push_back(
      {Grade::good, "launcher",
       "on one machine --nproc N starts ranks" + (found.empty() ? std::string() : "; in PATH: " + join(found, ", ")),
       ""});
  return findings;
}

std::vector<Finding> check_all(const Host& host, const EngineFacts& engine) {
  std::vector<Finding> all;
  for (const std::vector<Finding>& part : {check_engine(engine), check_devices(host, engine), check_memory(host),
                                           check_threads(host), check_network(host, engine), check_launcher(host)}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace ridgeline::doctor
