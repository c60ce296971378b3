// TextReader: the bytes of a text file as a stream, gzip (.gz) and dictzip (.dz) unpacked on the way.
//
// What a file is, is told by its first bytes and not by its name. A compressed file that is damaged or cut short is an
// InputError. Memory does not depend on the size of the file.
#pragma once

#include <cstdint>
#include <span>
#include <string>

struct gzFile_s;

namespace ridgeline::data {

class TextReader {
 public:
  explicit TextReader(const std::string& path);
  TextReader(const TextReader&) = delete;
  TextReader& operator=(const TextReader&) = delete;
  ~TextReader();

  // Fills the front of `out`; 0 at the end of the file.
  size_t read(std::span<char> out);
  // Bytes of the file (packed, where it is) that were consumed, and its size.
  int64_t position() const;
  int64_t size() const { return size_; }

 private:
  [[noreturn]] void fail(const char* reason) const;

  std::string path_;
  gzFile_s* file_ = nullptr;
  int64_t size_ = 0;
};

}  // namespace ridgeline::data
