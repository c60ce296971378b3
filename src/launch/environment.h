// Which rank this process is: read from what torchrun, srun, mpirun or `ridgeline --nproc` left in the environment.
// Ridgeline has no launcher of its own for clusters; it reads whatever the machine's launcher sets.
//
//   launcher     rank, world and local rank from                      rendezvous from
//   torchrun     RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE       MASTER_ADDR, MASTER_PORT
//   openmpi      OMPI_COMM_WORLD_*                                    MASTER_*, else derived from the job
//   pals         PALS_* and PMI_SIZE (HPE, Aurora)                    MASTER_*, else PBS_NODEFILE and the job
//   mpich        PMI_RANK, PMI_SIZE, MPI_LOCALRANKID (hydra)          MASTER_*, else derived from the job
//   slurm        SLURM_PROCID ... of a job step (srun)                MASTER_*, else the step's first host and the job
//   local        what run_local_ranks sets (launch/local.h)           a file
//   single       nothing of the above                                 none needed
//
// RIDGELINE_RENDEZVOUS_FILE, a path that all ranks see and that does not exist before the job, replaces address and
// port. A half-set or contradictory environment is an InputError that names the variables. An allocation's shell
// (salloc, sbatch) without srun is no step: it is "single".
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace ridgeline::launch {

struct RankEnvironment {
  int rank = 0;
  int world = 1;
  int local_rank = 0;   // among the ranks of this machine
  int local_world = 1;  // ranks on this machine
  std::string launcher = "single";
  std::string master_address;  // host of the TCP store; empty where there is one rank or a rendezvous file
  int master_port = 0;
  std::string rendezvous_file;  // not empty: ranks meet at this file instead
  bool cores_are_own = false;   // the launcher bound this rank to cores that no other rank uses
  std::string note;             // something that the user should know, or empty
};

// Value of an environment variable, none where it is not set.
using Variables = std::function<std::optional<std::string>(const std::string& name)>;

RankEnvironment detect();
RankEnvironment detect(const Variables& variables);

// "rank 3 of 8 (local 3 of 4, slurm, rendezvous at nid001:12345)"
std::string describe(const RankEnvironment& environment);

// First host of a Slurm node list: "frontier[00012-00013,00020],login1" gives "frontier00012". Throws InputError.
std::string first_host(const std::string& node_list);

}  // namespace ridgeline::launch
