#include "platform/accelerators.h"

#include <ATen/DeviceAccelerator.h>

namespace ridgeline::platform {

std::vector<Device> accelerators() {
  std::vector<Device> devices;
  if (Device::select("auto").is_cpu()) return devices;
  const int64_t count = at::accelerator::deviceCount();
  for (int64_t index = 0; index < count; ++index) devices.push_back(Device::select("auto", index));
  return devices;
}

}  // namespace ridgeline::platform
