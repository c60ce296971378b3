// The one place that asks which torch this is. Versions 2.11 to 2.14 are supported; whatever differs between them gets
// a name here, and no other file tests a version.
#pragma once

#include <torch/headeronly/version.h>

#include <cstddef>

namespace ridgeline::platform {

// 2.13.1 is 213.
inline constexpr int torch_version = TORCH_VERSION_MAJOR * 100 + TORCH_VERSION_MINOR;
static_assert(torch_version >= 211, "Ridgeline needs torch 2.11 or newer; install a newer torch package");

// What sizeof(c10d::ProcessGroupGloo) must be, read from each version's own headers; 0 where nobody has looked. The
// class is compiled against our stand-ins for gloo's headers (mesh/gloo_stubs), so another size means that they no
// longer fit.
constexpr std::size_t gloo_process_group_bytes() {
  switch (torch_version) {
    case 211:
    case 212:
    case 213:
      return 488;
    case 214:
      return 544;
    default:
      return 0;
  }
}

}  // namespace ridgeline::platform
