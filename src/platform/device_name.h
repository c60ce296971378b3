// What a device is called. ATen tells no names without a vendor's headers, so the vendor's driver library, which is in
// the process whenever such a device is in use, is asked at run time through its C interface.
#pragma once

#include <optional>
#include <string>

#include "platform/device.h"

namespace ridgeline::platform {

// None where the driver cannot be asked. Half of a two-tile Intel card that shows as a device of its own has " (tile)"
// added, since the driver calls both the same.
std::optional<std::string> accelerator_name(DeviceKind kind, int index);

// "model name" of /proc/cpuinfo, or the kind of machine ("aarch64") where there is none.
std::string cpu_name();

}  // namespace ridgeline::platform
