// Manifest: what a checkpoint holds and where, as written in its manifest.json (docs/checkpoints.md has the format).
//
// It knows tensors by their global names and shapes and says which file holds which slice of each; nothing in it
// depends on the layout of the ranks that wrote it. The index that each rank leaves for the publisher is a manifest of
// one file.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "checkpoint/dtype.h"
#include "checkpoint/file_system.h"
#include "checkpoint/slice.h"

namespace ridgeline::checkpoint {

struct Piece {
  int64_t file = 0;  // number in Manifest::files
  std::string key;   // name of the piece in that file
  Slice slice;
};

struct TensorRecord {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;  // global
  std::vector<Piece> pieces;
};

struct FileRecord {
  std::string name;  // inside the checkpoint's folder
  uint64_t size = 0;
  uint64_t checksum = 0;  // XXH3-64 of all its bytes
};

struct Manifest {
  static constexpr int64_t kFormat = 1;
  int64_t step = 0;
  int64_t consumed_samples = 0;
  nlohmann::json state = nlohmann::json::object();  // the caller's: loss scale, config text and the like
  std::vector<FileRecord> files;
  std::vector<TensorRecord> tensors;  // sorted by name

  const TensorRecord* find(const std::string& name) const;  // nullptr where there is none
};

std::string encode_manifest(const Manifest& manifest);

// InputError naming `where` and the key for anything that encode_manifest would not have written: another format, a
// wrong checksum of the manifest itself, file names that leave the folder, slices that leave their tensor.
Manifest decode_manifest(const std::string& text, const std::string& where);

// Reads and decodes the manifest or index at `path`. InputError where there is none.
Manifest read_manifest(const Path& path);

}  // namespace ridgeline::checkpoint
