// The few file operations that writing a checkpoint needs, behind an interface, so that tests can fail and crash at
// each. Reading needs no replacement.
//
// Contract of every implementation: an operation that cannot be done throws Failure naming the path and the reason;
// what was written is durable only after sync(), and a new name only after sync_directory() of its folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ridgeline::checkpoint {

using Path = std::filesystem::path;

class OutputFile {
 public:
  virtual ~OutputFile() = default;
  virtual void write(std::span<const std::byte> bytes) = 0;  // appends all of it
  virtual void sync() = 0;
  virtual void close() = 0;  // without it the destructor closes and ignores errors
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual std::unique_ptr<OutputFile> create(const Path& path) = 0;  // empties a file that exists
  virtual void make_folders(const Path& path) = 0;                   // durable, with parents; existing ones are fine
  virtual void rename(const Path& from, const Path& to) = 0;         // `to` must not be a non-empty folder
  virtual void remove_file(const Path& path) = 0;                    // one that does not exist is fine
  virtual void remove_folder(const Path& path) = 0;                  // with all it holds; none is fine
  virtual void sync_directory(const Path& path) = 0;
  virtual uint64_t free_bytes(const Path& path) = 0;  // of the file system that holds the folder `path`
};

FileSystem& real_file_system();

// Writes a small file and flushes it to disk.
void write_text(FileSystem& files, const Path& path, const std::string& text);

// Names in the folder `path`, sorted; empty where there is no such folder.
std::vector<std::string> list_folder(const Path& path);

}  // namespace ridgeline::checkpoint
