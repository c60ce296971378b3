#include "core/file_lock.h"

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

namespace ridgeline {
namespace {

std::string this_process() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  return fmt::format("process {} on {}", getpid(), host.data());
}

}  // namespace

FileLock::FileLock(const std::filesystem::path& path, double patience,
                   const std::function<std::string(const std::string& owner)>& refusal) {
  descriptor_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw Failure("{}: cannot be opened: {}", path.string(), std::strerror(errno));
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(patience);
  while (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) {
      spdlog::debug("{}: cannot be locked: {}", path.string(), std::strerror(errno));
      return;
    }
    if (std::chrono::steady_clock::now() > end) {
      const std::string text = refusal(owner());
      close(descriptor_);
      throw InputError("{}", text);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  const std::string owner = this_process();
  // Only a help for whoever is refused: a full disk must not stop a run that has room for nothing else to write.
  if (ftruncate(descriptor_, 0) != 0 || pwrite(descriptor_, owner.data(), owner.size(), 0) < 0) {
    spdlog::debug("{}: cannot be written: {}", path.string(), std::strerror(errno));
  }
}

FileLock::~FileLock() { close(descriptor_); }

std::string FileLock::owner() const {
  std::array<char, 300> owner{};
  const ssize_t length = pread(descriptor_, owner.data(), owner.size() - 1, 0);
  return length > 0 ? owner.data() : "unknown";
}

}  // namespace ridgeline
