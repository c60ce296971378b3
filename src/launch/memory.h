// Memory that this process may use.
#pragma once

#include <cstdint>

namespace ridgeline::launch {

// Bytes: all of the machine's, or what its control group leaves of it (version 2, as seen from inside a container).
// Throws Failure where the machine does not tell.
int64_t usable_memory();

}  // namespace ridgeline::launch
