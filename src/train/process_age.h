// How long this process has been running, from the operating system: loading libtorch takes seconds before main().
#pragma once

namespace ridgeline::train {

// To the clock's tick, 10 ms mostly; 0 where it cannot be known.
double process_age_seconds();

}  // namespace ridgeline::train
