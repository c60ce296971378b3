// All accelerators that this process sees; none on a machine without, or with a torch that has no use for them.
#pragma once

#include <vector>

#include "platform/device.h"

namespace ridgeline::platform {

std::vector<Device> accelerators();

}  // namespace ridgeline::platform
