// What all ranks of one job share and no other job has, and the port that follows from it: so that ranks meet without
// being told where, and two jobs on one machine do not meet each other.
#pragma once

#include <string>

namespace ridgeline::launch {

// A port from 10000 to 29999: above the privileged ones, below those that Linux hands out (32768 and up).
int port_of_job(const std::string& job);

// The nearest ancestor of this process with that name, as "PID at START TIME"; where there is none, the parent process.
std::string launching_process(const std::string& name);

}  // namespace ridgeline::launch
