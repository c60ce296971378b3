// The safetensors file format: 8 bytes with the header's length (little-endian), a JSON header, then the tensors'
// bytes.
//
// Source: the format section of the README of huggingface/safetensors. Files are interchangeable with the safetensors
// package. Beyond what the format asks, the writer orders tensors by falling element size and pads the header to 8
// bytes, so that every tensor is aligned to its elements.
//
// Reading treats the file as hostile: nothing is touched that was not checked against the file's size. What is wrong
// with a file is an InputError that names the file and the tensor, what was found and what was expected.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "checkpoint/checksum.h"
#include "checkpoint/dtype.h"
#include "checkpoint/file_system.h"
#include "core/mapped_file.h"

namespace ridgeline::checkpoint {

using Metadata = std::map<std::string, std::string>;

struct TensorEntry {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  uint64_t begin = 0;  // offsets into the data, which starts behind the header
  uint64_t end = 0;
};

struct SafetensorsHeader {
  Metadata metadata;
  std::vector<TensorEntry> tensors;  // in the order of their bytes
  uint64_t data_start = 0;           // offset of the data in the file
  uint64_t file_size = 0;
};

// The header of a file with these tensors; `begin` and `end` of the entries are not read but set. InputError for names
// that repeat, reserved names, and shapes that are negative or too large.
SafetensorsHeader plan_safetensors(std::vector<TensorEntry> tensors, Metadata metadata);
std::string encode_header(const SafetensorsHeader& header);  // the first data_start bytes of the file

// Checks the head of a file that has `file_size` bytes; `head` needs to hold its header at least.
SafetensorsHeader decode_header(std::span<const std::byte> head, uint64_t file_size, const std::string& where);

struct FileDigest {
  uint64_t size = 0;
  uint64_t checksum = 0;
};

// Writes a file in one pass without holding more than the caller's chunk.
class SafetensorsWriter {
 public:
  SafetensorsWriter(FileSystem& files, const Path& path, SafetensorsHeader header);
  // Bytes of the tensors in the order of header().tensors, cut anywhere.
  void write(std::span<const std::byte> bytes);
  // Flushes to disk and closes. InternalError where bytes are missing.
  FileDigest finish();
  const SafetensorsHeader& header() const { return header_; }

 private:
  void append(std::span<const std::byte> bytes);

  SafetensorsHeader header_;
  std::unique_ptr<OutputFile> file_;
  FileDigest digest_;
  Checksum checksum_;
};

// An open file. Tensors' bytes are mapped and stay valid as long as this lives.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const Path& path);
  const Path& path() const { return path_; }
  const Metadata& metadata() const { return header_.metadata; }
  const std::vector<TensorEntry>& tensors() const { return header_.tensors; }
  const TensorEntry* find(const std::string& name) const;  // nullptr where there is none
  std::span<const std::byte> bytes(const TensorEntry& entry) const;
  // Lets the kernel drop the pages of `bytes`: reads of terabytes must not crowd out everything else.
  void forget(std::span<const std::byte> bytes) const;

 private:
  Path path_;
  MappedFile file_;
  SafetensorsHeader header_;
  std::unordered_map<std::string, size_t> index_;
};

}  // namespace ridgeline::checkpoint
