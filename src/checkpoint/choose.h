// The checkpoint that a user means by a path.
#pragma once

#include "checkpoint/file_system.h"

namespace ridgeline::checkpoint {

// The folder of checkpoints that the run folder `path` holds, or `path` itself. InputError where there is no such
// folder.
Path checkpoint_folder(const Path& path);

// `path` where it is a checkpoint, else the newest complete one of checkpoint_folder(path). InputError where there is
// none.
Path choose_checkpoint(const Path& path);

}  // namespace ridgeline::checkpoint
