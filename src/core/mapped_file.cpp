#include "core/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/mapping_fault.h"

namespace ridgeline {

MappedFile::MappedFile(const std::string& path) : path_(path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw InputError("{}: cannot be opened: {}", path, std::strerror(errno));
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    throw InputError("{}: is not a regular file; expected one that can be mapped into memory", path);
  }
  const auto size = static_cast<size_t>(status.st_size);
  void* address = size > 0 ? ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0) : nullptr;
  const int error = errno;
  ::close(descriptor);
  if (address == MAP_FAILED) {
    throw Failure("{}: {} bytes cannot be mapped into memory: {}", path, size, std::strerror(error));
  }
  bytes_ = {static_cast<const std::byte*>(address), size};
  if (size > 0) watch_mapping(path, address, size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  forget_mapping(bytes_.data());
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace ridgeline
