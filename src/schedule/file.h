// Schedules as text files (docs/schedules.md), so that a user can run an order of their own:
//
//   ridgeline-schedule 1
//   stages 2
//   chunks 1
//   micro_batches 3
//   layout round
//   stage 0: F0 F1 B0 F2 B1 B2
//   stage 1: F0 B0 F1 B1 F2 B2
//
// A file lists compute alone; messages follow from it (the sends after the compute that makes them, the receives before
// the compute that needs them). What is read has passed check(): a file that cannot be executed is refused.
#pragma once

#include <string>

#include "schedule/actions.h"

namespace ridgeline::schedule {

// Throws InputError, naming file and line, for anything but a schedule that can be executed.
Schedule read_schedule(const std::string& path);
Schedule parse_schedule(const std::string& text, const std::string& name);

// The schedule of strategy.schedule_file, which must be one for the strategy's stages, chunks and micro-batches.
Schedule read_schedule(const spec::Strategy& strategy);

// A training schedule whose chunks go round or lie as a V.
std::string to_text(const Schedule& schedule);

}  // namespace ridgeline::schedule
