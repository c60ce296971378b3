// Which start of which machine this is.
#pragma once

#include <string>

namespace ridgeline::launch {

// Equal for all processes of one start of one machine, on no other; empty where the kernel does not tell.
std::string boot_identity();

}  // namespace ridgeline::launch
