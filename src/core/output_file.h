// OutputFile: a file that comes to be whole or not at all.
//
//   OutputFile file("out/corpus.bin");   // writes out/corpus.bin.tmp
//   file.write(bytes);
//   file.close();                        // flushed and on the disk (fsync), still under its temporary name
//   file.publish();                      // renamed to out/corpus.bin, folder synchronised
//
// What stands at the path may only be a regular file, since it is replaced: a device or a folder is an InputError.
// Destroyed before publish(), it removes the temporary file and leaves what stood at the path untouched. Every error of
// the disk is a Failure that names the file, the bytes written so far and the reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ridgeline {

class OutputFile {
 public:
  explicit OutputFile(std::string path);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  void write(std::span<const std::byte> bytes);
  template <typename T>
  void write_array(std::span<const T> values) {
    write(std::as_bytes(values));
  }
  template <typename T>
  void write_value(const T& value) {
    write(std::as_bytes(std::span<const T>(&value, 1)));
  }
  void close();    // further writes are refused
  void publish();  // closes first where that is still to do

  const std::string& path() const { return path_; }
  int64_t size() const { return written_ + static_cast<int64_t>(buffer_.size()); }

 private:
  void flush();
  void write_through(std::span<const std::byte> bytes);
  [[noreturn]] void fail(const char* what, int error) const;

  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
  bool published_ = false;
  int64_t written_ = 0;
  std::vector<std::byte> buffer_;
};

// A file with this text, whole or not at all.
void write_whole_file(const std::string& path, std::string_view text);

}  // namespace ridgeline
