// MappedFile: a whole file as read-only memory.
//
// Opening throws InputError where the file is missing, unreadable or not a regular file. An empty file maps to an empty
// span. The mapping sees later changes of the file, and where a file is cut short while it is mapped the process that
// reads on ends with exit code 1 and the file's name: files are therefore only ever replaced by rename (see
// core/output_file.h), never rewritten in place.
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
