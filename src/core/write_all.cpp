#include "core/write_all.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace ridgeline {

WriteOutcome write_all(int descriptor, std::span<const std::byte> bytes) {
  WriteOutcome outcome;
  // Linux takes at most 2 GiB in one call; smaller chunks also keep the page cache's dirty pages moving.
  constexpr size_t kChunk = size_t{64} << 20;
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), std::min(bytes.size(), kChunk));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      outcome.error = count == 0 ? ENOSPC : errno;
      return outcome;
    }
    outcome.written += count;
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return outcome;
}

int synchronise_folder(const std::string& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return errno == EACCES ? 0 : errno;
  const int error = ::fsync(descriptor) == 0 ? 0 : errno;
  ::close(descriptor);
  return error == EINVAL || error == ENOTSUP || error == EROFS ? 0 : error;
}

}  // namespace ridgeline
