#include "core/text_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace ridgeline {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

class Descriptor {
 public:
  explicit Descriptor(const std::string& path) : number_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

// read(2) until `bytes` are there or the file ends; their number, -1 with errno where it cannot be read.
ssize_t read_up_to(int descriptor, char* into, size_t bytes) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t count = ::read(descriptor, into + done, bytes - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return -1;
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  return static_cast<ssize_t>(done);
}

}  // namespace

std::string read_text_file(const std::string& path, const std::string& expected, size_t limit) {
  const auto cannot = [&](int error) {
    return InputError("{}: cannot read: {}; expected {}", path, std::strerror(error), expected);
  };
  const auto too_large = [&] {
    const bool whole = limit % kMiB == 0;
    return InputError("{}: larger than {} {}; expected {}", path, whole ? limit / kMiB : limit, whole ? "MiB" : "bytes",
                      expected);
  };
  const Descriptor file(path);
  if (file.number() < 0) throw cannot(errno);
  struct stat status{};
  if (::fstat(file.number(), &status) != 0) throw cannot(errno);
  if (S_ISDIR(status.st_mode)) throw InputError("{}: is a folder; expected {}", path, expected);
  if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode)) {
    throw InputError("{}: is not a regular file; expected {}", path, expected);
  }
  if (S_ISREG(status.st_mode) && static_cast<uintmax_t>(status.st_size) > limit) throw too_large();

  // The size is a hint alone: a pipe has none, and a file may grow. A step past its end tells that all was read.
  std::string text;
  size_t step = static_cast<size_t>(status.st_size) + 1;
  while (true) {
    const size_t before = text.size();
    text.resize(before + step);
    const ssize_t count = read_up_to(file.number(), text.data() + before, step);
    if (count < 0) throw cannot(errno);
    text.resize(before + static_cast<size_t>(count));
    if (text.size() > limit) throw too_large();
    if (static_cast<size_t>(count) < step) return text;
    step = std::min(std::max(text.size(), size_t{1} << 16), limit + 1 - text.size());
  }
}

}  // namespace ridgeline
