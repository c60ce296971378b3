// MappedFile: a whole file as read-only memory.
//
// Opening throws InputError where the file is missing, unreadable or not a regular file. An empty file maps to an empty
// span. The mapping sees later changes of the file, and a file that is cut short while it is mapped ends the process
// with SIGBUS: files are therefore only ever replaced by rename (see output_file.h), never rewritten in place.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace ridgeline {

class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::span<const std::byte> bytes_;
};

}  // namespace ridgeline
