// What a whole training meets on a machine beside its steps: power, failures, starts, storage, and the site's ways of
// running jobs. Plain data, tables of a machine file (spec/machine.h).
//
// Zero means "not known" where the comment says so; what uses these figures then asks for them or says that it assumes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/schema.h"

namespace ridgeline::spec {

struct PowerFacts {         // [power]
  double busy_w = 0;        // of a device while it trains, mean over steps; 0: not known
  double idle_w = 0;        // of a device that waits
  double node_other_w = 0;  // of a node beside its devices: processors, memory, network ports, fans
  double pue = 1;           // energy of the site over energy of its computers
};

struct OperationFacts {         // [operation]
  double node_mtbf_hours = 0;   // of one node, between failures that end a job; 0: not known
  double restart_minutes = 10;  // from a failure until processes start again: MegaScale (NSDI 2024), under 10 minutes
  double start_minutes = 5;     // from there to the first step, without reading a checkpoint
  double storage_gb_per_s = 0;  // that all nodes together write; 0: not known
  double node_storage_gb_per_s = 2;  // that one node writes at most
};

// [site]: what a batch job of the site needs. Words go into the script as they stand.
struct SiteFacts {
  std::vector<std::string> walltime;     // "NODES: HOURS": the longest job from so many nodes on, ascending
  std::vector<std::string> sbatch;       // options of sbatch, such as "--network=disable_rdzv_get"
  std::vector<std::string> modules;      // to load
  std::vector<std::string> environment;  // NAME=VALUE
  std::vector<std::string> srun;         // options of srun: binding of ranks to cores and devices
};

void bind_operation(Schema& schema, PowerFacts& power, OperationFacts& operation, SiteFacts& site);

// Hours of the longest job on so many nodes; nothing where the site sets no limit. Throws InputError, naming `file`,
// where the words are not understood.
std::optional<double> longest_job_hours(const SiteFacts& site, int64_t nodes, const std::string& file);

// Throws InputError where a table's words are not understood.
void check(const SiteFacts& site, const std::string& file);

}  // namespace ridgeline::spec
