#include "data/write_all.h"

#include <unistd.h>

#include <cerrno>

namespace ridgeline::data {

WriteOutcome write_all(int descriptor, std::span<const std::byte> bytes) {
  WriteOutcome outcome;
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
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

}  // namespace ridgeline::data
