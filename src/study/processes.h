// Processes of this machine: started in a session of their own and ended whole.
//
// Three nets hold what a run starts: the kernel kills the leader if the tuner dies (and `ridgeline train` has its ranks killed
// the same way); ending a run kills the leader's process group; and last every process is looked for that carries the
// run's mark in its environment, wherever it has put itself.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ridgeline::study {

struct ProcessOrder {
  std::vector<std::string> command = {};                            // program (a path) and arguments
  std::vector<std::pair<std::string, std::string>> variables = {};  // added to this process's own
  std::string log = {};                                             // stdout and stderr are appended to it
  double memory_limit_bytes = 0;                               // RLIMIT_DATA of each process; 0: none
  int death_signal = SIGKILL;                                  // sent to it if this process dies
};

// Starts it as the leader of a new session. Throws Failure where it cannot be started.
pid_t start_process(const ProcessOrder& order);

// "PID START": PID alone may by now be another process's. Empty where there is none.
std::string identity_of(pid_t process);

// Kills every process that has `NAME=value` in its environment, until none is left. Those of other users are not seen.
void kill_marked(const std::string& mark);
std::vector<pid_t> marked_processes(const std::string& mark);

// Ends a child of this process with its process group, and all that carry the mark; collects the child's status.
void end_process(pid_t leader, const std::string& mark);

// A program that is soon done (squeue, scontrol), run to its end.
struct ProgramEnd {
  bool succeeded = false;  // exit code 0
  std::string output, errors;
};
ProgramEnd run_to_end(const std::vector<std::string>& command);

// What it said on stdout. Nothing where it fails.
std::optional<std::string> output_of(const std::vector<std::string>& command);

// Times that the kernel has killed something for memory since the machine started; 0 where it does not say.
int64_t kernel_memory_kills();

}  // namespace ridgeline::study
