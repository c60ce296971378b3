#include "train/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "core/error.h"
#include "core/log.h"

namespace ridgeline::train {
namespace {

std::string this_process() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  return fmt::format("process {} on {}", getpid(), host.data());
}

}  // namespace

RunLock::RunLock(const std::filesystem::path& folder, double patience) : path_(folder / "lock") {
  descriptor_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw Failure("{}: cannot be opened: {}", path_.string(), std::strerror(errno));
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(patience);
  while (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) {
      spdlog::debug("{}: cannot be locked: {}", path_.string(), std::strerror(errno));
      return;
    }
    if (std::chrono::steady_clock::now() > end) refuse(folder);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  const std::string owner = this_process();
  // Only a help for whoever is refused: a full disk must not stop a run that has room for nothing else to write.
  if (ftruncate(descriptor_, 0) != 0 || pwrite(descriptor_, owner.data(), owner.size(), 0) < 0) {
    spdlog::debug("{}: cannot be written: {}", path_.string(), std::strerror(errno));
  }
}

RunLock::~RunLock() { close(descriptor_); }

void RunLock::refuse(const std::filesystem::path& folder) const {
  std::array<char, 300> owner{};
  const ssize_t length = pread(descriptor_, owner.data(), owner.size() - 1, 0);
  close(descriptor_);
  throw InputError(
      "training.run = \"{}\": another job is training there ({}). Wait for it or stop it, or give this one a folder of "
      "its own; if it is surely gone, remove {}",
      folder.string(), length > 0 ? owner.data() : "unknown", path_.string());
}

}  // namespace ridgeline::train
