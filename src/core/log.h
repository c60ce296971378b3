// The log: lines on stderr, so that stdout holds results and nothing else.
//
//   set_up_log(rank, world);            once, at the start of main
//   spdlog::info("loaded {} samples", n);
//
// RIDGELINE_LOG = trace, debug, info, warn, error or off sets the level of every rank. Without it rank 0 logs from info
// and the other ranks from warn, so that a thousand ranks do not say the same. Lines carry the rank where there is more
// than one; colours appear on a terminal only (and never where NO_COLOR is set).
#pragma once

#include <spdlog/spdlog.h>

namespace ridgeline {

// Throws InputError where RIDGELINE_LOG names no level.
void set_up_log(int rank = 0, int world = 1);

}  // namespace ridgeline
