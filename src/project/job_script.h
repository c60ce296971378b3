// A batch job for Slurm that trains a config from wherever it stands to its end, through time limits and failures.
//
// The job asks Slurm for a signal some time before its limit; `train` then saves and ends with code 3, and the job puts
// itself back in the queue. After a failure it starts the ranks again within the same job; starts that bring no new
// checkpoint end it. A node that dies ends the job, which Slurm puts back in the queue; with spare nodes the job lives
// on, and what is left of its nodes takes over. Everything that a site asks for comes from its machine file ([site]).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "spec/machine.h"

namespace ridgeline::project {

struct JobOrder {
  std::string program;  // path of `ridgeline`
  std::string config;
  std::vector<std::string> sets;  // "key=value"
  std::string machine;            // as train's --machine takes it; empty: none
  std::string run;                // training.run
  std::string name;
  std::string account;              // empty: none is given
  std::vector<std::string> sbatch;  // options beside the site's
  int64_t nodes = 1;
  int64_t spare_nodes = 0;
  int64_t ranks_per_node = 1;
  double seconds = 0;       // of the job
  double lead_seconds = 0;  // by which the signal comes before its end
};

// Seconds that saving needs before a job's end: the step under way, the save, each with as much again, and two minutes.
double lead_seconds(double step_seconds, double save_seconds);

// Throws InputError where the job is too short for its lead, or a word would break the script.
std::string job_script(const JobOrder& order, const spec::Machine& machine);

// For a POSIX shell: in single quotes where it needs them.
std::string shell_quoted(const std::string& word);

}  // namespace ridgeline::project
