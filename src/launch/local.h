// Ranks on this machine: `ridgeline train --nproc N`.
//
// Starts N copies of a program with the variables that launch/environment.h reads, and looks after them until all have
// ended. Nothing is left over: each rank leads its own process group, which is killed when the rank ends, and the
// kernel kills the ranks if this process dies.
//
//   output      rank 0 inherits stdout and stderr (a terminal stays a terminal); the lines of the others are passed
//               on whole, on stderr with their rank in front
//   input       ranks read nothing: stdin is /dev/null
//   signals     SIGINT, SIGTERM and SIGUSR1 go on to all ranks; a second SIGINT kills them
//   failures    when a rank fails, the others get `grace_seconds` to end by themselves, then SIGTERM, then SIGKILL
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace ridgeline::launch {

struct LocalRun {
  std::vector<std::string> command;  // program (a path) and its arguments
  int ranks = 1;
  std::vector<std::pair<std::string, std::string>> variables = {};  // set for every rank, besides the launcher's own
  double grace_seconds = 5.0;
};

// The exit code of the rank that failed first (1 where a signal killed it), 0 where none did. Throws InputError for a
// number of ranks that is no such, Failure where processes cannot be started. To be called from a process with one
// thread.
int run_local_ranks(const LocalRun& run);

}  // namespace ridgeline::launch
