// CPU cores that a rank may use.
#pragma once

#include <string>

#include "launch/environment.h"

namespace ridgeline::launch {

// Cores of this process: its affinity mask, cut by the CPU quota of its control groups (version 2 and 1). At least 1.
int usable_cores();

// Quota in cores that the control group file systems below `root` set on the process whose /proc/PID/cgroup text is
// `membership`; 0 where there is none.
double cgroup_quota(const std::string& root, const std::string& membership);

// usable_cores() divided among the ranks of the machine, or all of them where the launcher bound the rank. At least 1.
int threads_per_rank(const RankEnvironment& environment);

}  // namespace ridgeline::launch
