// A folder of checkpoints: which are there, which is the newest that is whole, and what may go.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/file_system.h"

namespace ridgeline::checkpoint {

using Report = std::function<void(const std::string&)>;

// Why the checkpoint at `path` is not whole (no or damaged manifest, missing files, wrong sizes), or nothing. Sizes are
// compared, contents are not: CheckpointReader::verify does that.
std::optional<std::string> find_damage(const Path& path);

// Checkpoints of the folder, newest first, whole or not. What is being written or removed is not among them.
std::vector<Path> list_checkpoints(const Path& folder);

// The newest whole checkpoint of the folder. `skipped` hears of each newer one, and why it cannot be used.
std::optional<Path> newest_complete(const Path& folder, const Report& skipped = {});

// Removes what lies behind the `keep` newest whole checkpoints; 0 keeps all. Damaged ones are not counted, and go once
// `keep` newer whole ones exist. The newest whole checkpoint is never touched.
void prune(const Path& folder, int64_t keep, FileSystem& files = real_file_system());

// Removes what interrupted saves and removals left, but for the save of `step` that may be in progress (-1: none).
// Only one rank may call it, while no other step is being saved.
void clean_leftovers(const Path& folder, int64_t step = -1, FileSystem& files = real_file_system());

}  // namespace ridgeline::checkpoint
