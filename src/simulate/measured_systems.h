// Which shipped machine, and which software stack on it, a recorded row means by its words for source, system and
// device.
//
// First the sources whose stack has constants of its own (a machine file of its own), then named systems, then the
// device alone: that one is a guess of the cluster around it and of the software, and says so.
#pragma once

#include <string>

namespace ridgeline::simulate {

struct SystemMatch {
  std::string machine;     // name of a shipped machine; empty: none is like it
  bool by_device = false;  // the device's name alone decided
};

SystemMatch match_system(const std::string& source, const std::string& system, const std::string& device);

}  // namespace ridgeline::simulate
