#include "launch/boot.h"

#include <fstream>

namespace ridgeline::launch {

std::string boot_identity() {
  std::string identity;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> identity;
  return identity;
}

}  // namespace ridgeline::launch
