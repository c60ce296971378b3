// RunLock: a run folder is trained in by one job at a time. Two jobs would take each other's checkpoints and metrics
// away without either seeing a fault.
#pragma once

#include <filesystem>

#include "core/file_lock.h"

namespace ridgeline::train {

class RunLock {
 public:
  // Throws InputError that names the process which has the folder already.
  explicit RunLock(const std::filesystem::path& folder, double patience = 5.0);

 private:
  FileLock lock_;
};

}  // namespace ridgeline::train
