#include "launch/environment.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <fstream>

#include "core/error.h"
#include "launch/job_key.h"

namespace ridgeline::launch {
namespace {

// Reads variables of one launcher, and complains in its name.
class Reader {
 public:
  Reader(const Variables& variables, std::string launcher) : variables_(variables), launcher_(std::move(launcher)) {}

  bool has(const std::string& name) const { return variables_(name).has_value(); }
  std::string text(const std::string& name) const { return variables_(name).value_or(""); }

  int integer(const std::string& name, int low) const {
    const auto value = variables_(name);
    if (!value) {
      throw InputError(
          "environment: {} is not set although other variables of {} are; start all ranks with the "
          "launcher, or unset them",
          name, launcher_);
    }
    int number = 0;
    const char* end = value->data() + value->size();
    const auto [stop, error] = std::from_chars(value->data(), end, number);
    if (error != std::errc() || stop != end || number < low) {
      throw InputError("environment: {} = '{}': expected an integer >= {} (set by {})", name, *value, low, launcher_);
    }
    return number;
  }

  // The first of `names` that is set.
  int first_integer(std::initializer_list<const char*> names, int low) const {
    for (const char* name : names) {
      if (has(name)) return integer(name, low);
    }
    return integer(*names.begin(), low);
  }

 private:
  const Variables& variables_;
  std::string launcher_;
};

void check(const RankEnvironment& environment) {
  const auto refuse = [&](const std::string& what) {
    throw InputError("environment: {} says rank {} of {}, local rank {} of {}: {}", environment.launcher,
                     environment.rank, environment.world, environment.local_rank, environment.local_world, what);
  };
  if (environment.rank >= environment.world) refuse("the rank must be below the number of ranks");
  if (environment.local_rank >= environment.local_world) refuse("the local rank must be below the local ranks");
  if (environment.local_world > environment.world) refuse("more local ranks than ranks");
}

// Address and port: the user's own MASTER_ADDR and MASTER_PORT where set, else what the launcher lets us derive.
// All ranks derive the same, as `derived_address` and `job` are the same on all of them.
void set_rendezvous(RankEnvironment& environment, const Reader& reader, std::string derived_address, std::string job) {
  if (environment.world == 1) return;
  environment.rendezvous_file = reader.text("RIDGELINE_RENDEZVOUS_FILE");
  if (!environment.rendezvous_file.empty()) return;
  const bool one_machine = environment.local_world == environment.world;
  if (derived_address.empty() && one_machine) derived_address = "127.0.0.1";
  environment.master_address = reader.has("MASTER_ADDR") ? reader.text("MASTER_ADDR") : derived_address;
  if (environment.master_address.empty()) {
    throw InputError(
        "environment: {} does not tell the host of rank 0; set MASTER_ADDR (and MASTER_PORT) for all ranks",
        environment.launcher);
  }
  if (reader.has("MASTER_PORT")) {
    environment.master_port = reader.integer("MASTER_PORT", 1);
    if (environment.master_port > 65535) {
      throw InputError("environment: MASTER_PORT = {}: expected 1 to 65535", environment.master_port);
    }
  } else if (!job.empty()) {
    environment.master_port = port_of_job(job);
  } else {
    throw InputError("environment: {} gives no name of the job to derive a port from; set MASTER_PORT for all ranks",
                     environment.launcher);
  }
}

// Host of rank 0 as the batch system knows it, where an MPI launcher does not say.
std::string batch_host(const Reader& reader) {
  const std::string node_file = reader.text("PBS_NODEFILE");
  if (!node_file.empty()) {
    std::ifstream stream(node_file);
    std::string host;
    if (stream >> host) return host;
  }
  const std::string nodes = reader.text("SLURM_JOB_NODELIST");
  return nodes.empty() ? "" : first_host(nodes);
}

std::string batch_job(const Reader& reader) {
  return reader.has("PBS_JOBID") ? reader.text("PBS_JOBID") : reader.text("SLURM_JOB_ID");
}

RankEnvironment detect_torchrun(const Variables& variables) {
  RankEnvironment environment;
  const Reader named(variables, "torchrun");
  environment.launcher = named.text("RIDGELINE_LAUNCHER") == "local" ? "local" : "torchrun";
  const Reader reader(variables, environment.launcher);
  environment.rank = reader.integer("RANK", 0);
  environment.world = reader.integer("WORLD_SIZE", 1);
  environment.local_rank = reader.integer("LOCAL_RANK", 0);
  environment.local_world = reader.integer("LOCAL_WORLD_SIZE", 1);
  check(environment);
  const bool has_file = !reader.text("RIDGELINE_RENDEZVOUS_FILE").empty();
  if (environment.world > 1 && !has_file && !reader.has("MASTER_ADDR")) {
    throw InputError("environment: MASTER_ADDR is not set although RANK and WORLD_SIZE are; set it and MASTER_PORT");
  }
  set_rendezvous(environment, reader, "", "");
  return environment;
}

RankEnvironment detect_openmpi(const Variables& variables) {
  RankEnvironment environment;
  environment.launcher = "openmpi";
  const Reader reader(variables, environment.launcher);
  environment.rank = reader.integer("OMPI_COMM_WORLD_RANK", 0);
  environment.world = reader.integer("OMPI_COMM_WORLD_SIZE", 1);
  environment.local_rank = reader.integer("OMPI_COMM_WORLD_LOCAL_RANK", 0);
  environment.local_world = reader.integer("OMPI_COMM_WORLD_LOCAL_SIZE", 1);
  environment.cores_are_own =
      reader.text("OMPI_MCA_orte_bound_at_launch") == "1" && reader.text("OMPI_MCA_rmaps_base_oversubscribe") != "1";
  check(environment);
  // The session folder and the job's number are those of one mpirun process; the key is random for each job.
  std::string job = reader.text("OMPI_MCA_orte_precondition_transports");
  for (const char* name : {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}) {
    if (job.empty()) job = reader.text(name);
  }
  const bool one_machine = environment.local_world == environment.world;
  set_rendezvous(environment, reader, one_machine ? "" : batch_host(reader), job);
  return environment;
}

RankEnvironment detect_pals(const Variables& variables) {
  RankEnvironment environment;
  environment.launcher = "pals";
  const Reader reader(variables, environment.launcher);
  environment.rank = reader.integer("PALS_RANKID", 0);
  environment.world = reader.first_integer({"PMI_SIZE", "PALS_SIZE"}, 1);
  environment.local_rank = reader.first_integer({"PALS_LOCAL_RANKID", "PMI_LOCAL_RANK"}, 0);
  environment.local_world = reader.first_integer({"PALS_LOCAL_SIZE", "PMI_LOCAL_SIZE", "MPI_LOCALNRANKS"}, 1);
  environment.cores_are_own = reader.has("PALS_CPU_BIND") && reader.text("PALS_CPU_BIND") != "none";
  check(environment);
  const std::string job = reader.has("PALS_APID") ? reader.text("PALS_APID") : batch_job(reader);
  set_rendezvous(environment, reader, batch_host(reader), job);
  return environment;
}

RankEnvironment detect_mpich(const Variables& variables) {
  RankEnvironment environment;
  environment.launcher = "mpich";
  const Reader reader(variables, environment.launcher);
  environment.rank = reader.integer("PMI_RANK", 0);
  environment.world = reader.integer("PMI_SIZE", 1);
  environment.local_rank = reader.integer("MPI_LOCALRANKID", 0);
  environment.local_world = reader.integer("MPI_LOCALNRANKS", 1);
  check(environment);
  const bool one_machine = environment.local_world == environment.world;
  set_rendezvous(environment, reader, one_machine ? "" : batch_host(reader),
                 one_machine ? launching_process("hydra_pmi_proxy") : batch_job(reader));
  return environment;
}

// Entry `node` of "8(x2),4": tasks on each node of a step.
int tasks_on_node(const std::string& counts, int node) {
  const auto refuse = [&] {
    throw InputError(
        "environment: SLURM_STEP_TASKS_PER_NODE = '{}': expected a list such as 8(x2),4 that has an entry "
        "for node {}",
        counts, node);
  };
  int64_t passed = 0;
  const char* at = counts.data();
  const char* end = at + counts.size();
  while (at < end) {
    int tasks = 0, repeated = 1;
    auto result = std::from_chars(at, end, tasks);
    if (result.ec != std::errc() || tasks < 1) refuse();
    at = result.ptr;
    if (end - at > 2 && at[0] == '(' && at[1] == 'x') {
      result = std::from_chars(at + 2, end, repeated);
      if (result.ec != std::errc() || repeated < 1 || result.ptr == end || *result.ptr != ')') refuse();
      at = result.ptr + 1;
    }
    passed += repeated;
    if (node < passed) return tasks;
    if (at < end && *at++ != ',') refuse();
  }
  refuse();
  return 0;
}

RankEnvironment detect_slurm(const Variables& variables) {
  RankEnvironment environment;
  environment.launcher = "slurm";
  const Reader reader(variables, environment.launcher);
  environment.rank = reader.integer("SLURM_PROCID", 0);
  environment.world = reader.first_integer({"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}, 1);
  environment.local_rank = reader.integer("SLURM_LOCALID", 0);
  environment.local_world = environment.world;
  const std::string counts = reader.has("SLURM_STEP_TASKS_PER_NODE") ? reader.text("SLURM_STEP_TASKS_PER_NODE")
                                                                     : reader.text("SLURM_TASKS_PER_NODE");
  if (!counts.empty()) environment.local_world = tasks_on_node(counts, reader.integer("SLURM_NODEID", 0));
  const std::string bind = reader.text("SLURM_CPU_BIND_TYPE");
  environment.cores_are_own = bind.starts_with("mask_cpu") || bind.starts_with("map_cpu");
  check(environment);
  const std::string nodes =
      reader.has("SLURM_STEP_NODELIST") ? reader.text("SLURM_STEP_NODELIST") : reader.text("SLURM_JOB_NODELIST");
  const std::string job = reader.text("SLURM_JOB_ID");
  const bool one_machine = environment.local_world == environment.world;
  set_rendezvous(environment, reader, one_machine || nodes.empty() ? "" : first_host(nodes),
                 job.empty() ? "" : fmt::format("slurm {}.{}", job, reader.text("SLURM_STEP_ID")));
  return environment;
}

// srun gives a step a number; batch, external and interactive steps (a shell in an allocation) have numbers from this
// on.
bool is_slurm_step(const Variables& variables) {
  const auto procid = variables("SLURM_PROCID");
  const auto step = variables("SLURM_STEP_ID");
  if (!procid || !step) return false;
  uint64_t number = 0;
  const auto [stop, error] = std::from_chars(step->data(), step->data() + step->size(), number);
  constexpr uint64_t kFirstSpecialStep = 4294967280u;
  return error == std::errc() && number < kFirstSpecialStep;
}

}  // namespace

RankEnvironment detect(const Variables& variables) {
  const auto has = [&](const char* name) { return variables(name).has_value(); };
  // Innermost launcher first: torchrun may run below srun, and mpirun starts its own helpers with srun.
  if (has("RANK") || has("WORLD_SIZE") || has("LOCAL_RANK")) return detect_torchrun(variables);
  if (has("OMPI_COMM_WORLD_RANK") || has("OMPI_COMM_WORLD_SIZE")) return detect_openmpi(variables);
  if (has("PALS_RANKID")) return detect_pals(variables);
  if (has("PMI_RANK") && has("MPI_LOCALRANKID")) return detect_mpich(variables);
  if (is_slurm_step(variables)) return detect_slurm(variables);
  if (has("PMI_RANK") && !has("SLURM_JOB_ID")) return detect_mpich(variables);
  RankEnvironment single;
  if (has("SLURM_JOB_ID")) {
    single.note = fmt::format(
        "inside Slurm job {} but not started by srun: this is one rank; use srun, torchrun or "
        "--nproc for more",
        *variables("SLURM_JOB_ID"));
  }
  return single;
}

RankEnvironment detect() {
  return detect([](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  });
}

std::string describe(const RankEnvironment& environment) {
  if (environment.world == 1) {
    return environment.launcher == "single" ? "one rank" : fmt::format("one rank ({})", environment.launcher);
  }
  const std::string meeting = environment.rendezvous_file.empty()
                                  ? fmt::format("{}:{}", environment.master_address, environment.master_port)
                                  : environment.rendezvous_file;
  return fmt::format("rank {} of {} (local {} of {}, {}, rendezvous at {})", environment.rank, environment.world,
                     environment.local_rank, environment.local_world, environment.launcher, meeting);
}

std::string first_host(const std::string& node_list) {
  std::string host;
  for (size_t at = 0; at < node_list.size() && node_list[at] != ','; ++at) {
    if (node_list[at] != '[') {
      host += node_list[at];
      continue;
    }
    const size_t close = node_list.find(']', at);
    if (close == std::string::npos) throw InputError("environment: node list '{}': a [ without ]", node_list);
    const std::string inside = node_list.substr(at + 1, close - at - 1);
    host += inside.substr(0, inside.find_first_of(",-"));
    at = close;
  }
  if (host.empty()) throw InputError("environment: node list '{}': expected a host first", node_list);
  return host;
}

}  // namespace ridgeline::launch
