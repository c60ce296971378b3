#include "checkpoint/safetensors.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace ridgeline::checkpoint {
namespace {

// Small enough that the checksum and the write find the bytes in the cache, large enough for parallel file systems.
constexpr size_t kChunk = size_t{4} << 20;

}  // namespace

SafetensorsWriter::SafetensorsWriter(FileSystem& files, const Path& path, SafetensorsHeader header)
    : header_(std::move(header)), file_(files.create(path)) {
  const std::string head = encode_header(header_);
  append(std::as_bytes(std::span(head)));
}

void SafetensorsWriter::append(std::span<const std::byte> bytes) {
  RIDGELINE_ASSERT(bytes.size() <= header_.file_size - digest_.size);
  while (!bytes.empty()) {
    const std::span<const std::byte> chunk = bytes.first(std::min(bytes.size(), kChunk));
    checksum_.add(chunk);
    file_->write(chunk);
    digest_.size += chunk.size();
    bytes = bytes.subspan(chunk.size());
  }
}

void SafetensorsWriter::write(std::span<const std::byte> bytes) { append(bytes); }

FileDigest SafetensorsWriter::finish() {
  RIDGELINE_ASSERT(digest_.size == header_.file_size);
  file_->sync();
  file_->close();
  digest_.checksum = checksum_.value();
  return digest_;
}

SafetensorsFile::SafetensorsFile(const Path& path)
    : path_(path), file_(path.string()), header_(decode_header(file_.bytes(), file_.bytes().size(), path.string())) {
  for (size_t index = 0; index < header_.tensors.size(); ++index) index_[header_.tensors[index].name] = index;
}

const TensorEntry* SafetensorsFile::find(const std::string& name) const {
  auto found = index_.find(name);
  return found == index_.end() ? nullptr : &header_.tensors[found->second];
}

std::span<const std::byte> SafetensorsFile::bytes(const TensorEntry& entry) const {
  return file_.bytes().subspan(header_.data_start + entry.begin, entry.end - entry.begin);
}

void SafetensorsFile::forget(std::span<const std::byte> bytes) const {
  const uintptr_t page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(bytes.data()) + page - 1) / page * page;
  const uintptr_t end = reinterpret_cast<uintptr_t>(bytes.data() + bytes.size()) / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace ridgeline::checkpoint
