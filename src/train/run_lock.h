// RunLock: a run folder is trained in by one job at a time. Two jobs would take each other's checkpoints and metrics
// away without either seeing a fault.
#pragma once

#include <filesystem>
#include <string>

namespace ridgeline::train {

class RunLock {
 public:
  // Throws InputError that names the process which has the folder already. One that was just killed may still be on its
  // way out: that is waited for, `patience` seconds. Where the file system knows no locks there is none.
  explicit RunLock(const std::filesystem::path& folder, double patience = 5.0);
  ~RunLock();  // the kernel does it too, however the process ends
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  void refuse(const std::filesystem::path& folder) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace ridgeline::train
