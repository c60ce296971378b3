#include "checkpoint/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "checkpoint/coverage.h"
#include "checkpoint/step_folder.h"
#include "core/error.h"
#include "core/text.h"

namespace ridgeline::checkpoint {
namespace {

constexpr size_t kOpenFiles = 64;  // a checkpoint of a large machine has thousands
constexpr size_t kChunk = size_t{4} << 20;

}  // namespace

CheckpointReader::CheckpointReader(const Path& path) : path_(path), manifest_(read_manifest(path / kManifestName)) {}

const TensorRecord& CheckpointReader::find_tensor(const std::string& name, DType dtype,
                                                  const std::vector<int64_t>& shape, const Slice& slice) const {
  const TensorRecord* tensor = manifest_.find(name);
  if (tensor == nullptr) {
    std::vector<std::string> names;
    for (const TensorRecord& each : manifest_.tensors) names.push_back(each.name);
    throw InputError("{}: no tensor \"{}\" among its {}{}", path_.string(), name, names.size(),
                     did_you_mean(name, names));
  }
  if (tensor->shape != shape) {
    throw InputError("{}: tensor \"{}\" has the shape {}, expected {}; the checkpoint is of another model",
                     path_.string(), name, shape_text(tensor->shape), shape_text(shape));
  }
  if (tensor->dtype != dtype) {
    throw InputError("{}: tensor \"{}\" is {}, expected {}", path_.string(), name, to_string(tensor->dtype),
                     to_string(dtype));
  }
  if (auto fault = find_fault(slice, shape)) {
    throw InternalError("{}: tensor \"{}\" is read with a slice where {}", path_.string(), name, *fault);
  }
  return *tensor;
}

const SafetensorsFile& CheckpointReader::open_file(int64_t number) {
  auto found = std::find_if(open_.begin(), open_.end(), [&](const OpenFile& each) { return each.number == number; });
  if (found != open_.end()) {
    open_.splice(open_.begin(), open_, found);
    return open_.front().file;
  }
  const FileRecord& record = manifest_.files[static_cast<size_t>(number)];
  std::error_code error;
  const uint64_t size = std::filesystem::file_size(path_ / record.name, error);
  if (!error && size != record.size) {
    throw InputError("{}: {} bytes, the manifest expects {}; the file is damaged", (path_ / record.name).string(), size,
                     record.size);
  }
  if (open_.size() >= kOpenFiles) open_.pop_back();
  open_.emplace_front(OpenFile{number, SafetensorsFile(path_ / record.name)});
  return open_.front().file;
}

void CheckpointReader::read_piece(const TensorRecord& tensor, const Piece& piece, const Slice& slice,
                                  std::span<std::byte> destination) {
  const SafetensorsFile& file = open_file(piece.file);
  const TensorEntry* entry = file.find(piece.key);
  if (entry == nullptr) {
    throw InputError("{}: no \"{}\", where the manifest has a piece of tensor \"{}\"", file.path().string(), piece.key,
                     tensor.name);
  }
  const std::span<const std::byte> bytes = file.bytes(*entry);
  const uint64_t expected = static_cast<uint64_t>(piece.slice.elements() * element_size(tensor.dtype));
  if (entry->dtype != tensor.dtype || bytes.size() != expected) {
    throw InputError("{}: \"{}\" has {} bytes of {}, the manifest expects {} of {} for tensor \"{}\"",
                     file.path().string(), piece.key, bytes.size(), to_string(entry->dtype), expected,
                     to_string(tensor.dtype), tensor.name);
  }
  copy_slice(piece.slice, bytes, slice, destination, element_size(tensor.dtype));
  file.forget(bytes);
}

void CheckpointReader::read(const std::string& name, DType dtype, const std::vector<int64_t>& shape, const Slice& slice,
                            std::span<std::byte> destination) {
  const TensorRecord& tensor = find_tensor(name, dtype, shape, slice);
  if (static_cast<int64_t>(destination.size()) != slice.elements() * element_size(dtype)) {
    throw InternalError("{}: tensor \"{}\", slice {}, is read into {} bytes", path_.string(), name, to_string(slice),
                        destination.size());
  }
  std::vector<const Piece*> pieces;
  std::vector<Slice> slices;
  for (const Piece& piece : tensor.pieces) {
    if (!intersect(piece.slice.box, slice.box)) continue;
    pieces.push_back(&piece);
    slices.push_back(piece.slice);
  }
  if (auto gap = first_gap(slice, slices)) {
    throw InputError("{}: tensor \"{}\" lacks {} of {}", path_.string(), name, to_string(box_slice(*gap)),
                     shape_text(shape));
  }
  for (const Piece* piece : pieces) {
    if (piece->slice.elements() > 0) read_piece(tensor, *piece, slice, destination);
  }
}

std::vector<std::string> CheckpointReader::verify(const std::function<void(uint64_t, uint64_t)>& progress) const {
  uint64_t total = 0;
  for (const FileRecord& file : manifest_.files) total += file.size;
  uint64_t done = 0;
  std::vector<std::string> faults;
  std::vector<char> chunk(kChunk);
  for (const FileRecord& file : manifest_.files) {
    std::ifstream stream(path_ / file.name, std::ios::binary);
    if (!stream) {
      faults.push_back(fmt::format("{}: cannot be opened: {}", file.name, std::strerror(errno)));
      continue;
    }
    Checksum checksum;
    uint64_t size = 0;
    while (stream.read(chunk.data(), static_cast<std::streamsize>(chunk.size())), stream.gcount() > 0) {
      const size_t count = static_cast<size_t>(stream.gcount());
      checksum.add(std::as_bytes(std::span(chunk.data(), count)));
      size += count;
      done += count;
      if (progress) progress(done, total);
    }
    if (stream.bad()) {
      faults.push_back(fmt::format("{}: cannot be read: {}", file.name, std::strerror(errno)));
    } else if (size != file.size) {
      faults.push_back(fmt::format("{}: {} bytes, expected {}", file.name, size, file.size));
    } else if (checksum.value() != file.checksum) {
      faults.push_back(fmt::format("{}: checksum {}, expected {}", file.name, checksum_text(checksum.value()),
                                   checksum_text(file.checksum)));
    }
  }
  return faults;
}

}  // namespace ridgeline::checkpoint
