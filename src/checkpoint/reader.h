// Reading a checkpoint into any layout.
//
//   CheckpointReader reader(*newest_complete(folder));
//   reader.read("layers.3.attention.qkv.weight", DType::F32, {12288, 4096}, slice, std::as_writable_bytes(span));
//
// Each rank reads just the slices that it holds; they are put together from whatever pieces the writers left. Files are
// mapped, so memory use is the destination plus pages that the kernel may drop. One thread a reader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/dtype.h"
#include "checkpoint/manifest.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/slice.h"
#include "checkpoint/store.h"

namespace ridgeline::checkpoint {

class CheckpointReader {
 public:
  explicit CheckpointReader(
      const Path& path);  // of one checkpoint; InputError or Failure where its manifest is not good

  const Path& path() const { return path_; }
  const Manifest& manifest() const { return manifest_; }

  // Fills `destination` with the elements of `slice` of the tensor `name`. InputError naming the tensor where there is
  // no such tensor, its dtype or global shape is another, or pieces are missing or disagree with their files.
  void read(const std::string& name, DType dtype, const std::vector<int64_t>& shape, const Slice& slice,
            std::span<std::byte> destination);

  // Compares every file with the manifest's checksums; returns one line for each that is not as it should be.
  // `progress` hears bytes done and bytes in all, every few MiB.
  std::vector<std::string> verify(const std::function<void(uint64_t, uint64_t)>& progress = {}) const;

 private:
  const TensorRecord& find_tensor(const std::string& name, DType dtype, const std::vector<int64_t>& shape,
                                  const Slice& slice) const;
  const SafetensorsFile& open_file(int64_t number);
  void read_piece(const TensorRecord& tensor, const Piece& piece, const Slice& slice, std::span<std::byte> destination);

  struct OpenFile {
    int64_t number;
    SafetensorsFile file;
  };

  Path path_;
  Manifest manifest_;
  std::list<OpenFile> open_;  // most recently used first
};

}  // namespace ridgeline::checkpoint
