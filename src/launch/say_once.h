// One voice for the ranks of a machine: a message that they all have alike is printed by one of them.
#pragma once

#include <string>

namespace ridgeline::launch {

// Whether this process is the first of the launcher's ranks on this machine that is to say `message`. The claim stands
// until the process ends: pause_for_others() gives those that come a little later time to see it.
bool is_first_to_say(const std::string& message);
void pause_for_others();

}  // namespace ridgeline::launch
