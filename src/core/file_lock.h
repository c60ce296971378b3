// FileLock: one process at a time, by a lock file that names its owner. The kernel gives the lock back however the
// process ends. Where the file system knows no locks there is none.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace ridgeline {

class FileLock {
 public:
  // Makes the file at `path`. Where another process has the lock and keeps it for `patience` seconds (one that was just
  // killed may still be on its way out) throws the InputError whose text `refusal` makes of the owner's name.
  FileLock(const std::filesystem::path& path, double patience,
           const std::function<std::string(const std::string& owner)>& refusal);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  std::string owner() const;

  int descriptor_ = -1;
};

}  // namespace ridgeline
