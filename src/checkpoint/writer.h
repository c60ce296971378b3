// Saving a checkpoint. Needs no communicator of its own: the caller supplies one barrier.
//
//   every rank   ShardWriter(folder, step, rank).write(shards);
//   every rank   barrier; if any rank failed, all stop here
//   rank 0       publish(folder, step, world, progress);  prune(folder, keep);
//
// Every element of every tensor must be in exactly one rank's shards: what is replicated is written by one of its
// holders. The folder must be the same for all ranks (a shared file system). Until publish has renamed `step-N.tmp` to
// `step-N` nothing that reads checkpoints sees the new one; from then on it is whole. Rank 0 removes what earlier,
// interrupted saves left. One save at a time in a folder. Nothing here touches devices, so a thread may run it on
// copies in host memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/dtype.h"
#include "checkpoint/file_system.h"
#include "checkpoint/slice.h"
#include "checkpoint/store.h"

namespace ridgeline::checkpoint {

// What one rank holds of one tensor. A rank may hold several pieces of a tensor.
struct TensorShard {
  std::string name;  // global, the same in all layouts
  DType dtype = DType::F32;
  std::vector<int64_t> shape;  // global
  Slice slice;
  std::span<const std::byte> bytes;  // the slice's elements, row-major
};

class ShardWriter {
 public:
  ShardWriter(Path folder, int64_t step, int64_t rank, FileSystem& files = real_file_system());

  // Writes this rank's file and index, durable on return. `bytes_of_all_ranks`, where the caller knows it, is what must
  // be free on the folder's file system before anything is written; otherwise it is this rank's own share. Failure
  // where space is short or the disk fails (its own partial file is gone then), InternalError for shards that are not
  // slices of their tensors.
  void write(const std::vector<TensorShard>& shards, uint64_t bytes_of_all_ranks = 0);

  // The same where the tensors are not in memory at once: `bytes_of` gives the elements of a shard, valid until its next
  // call, and the shards' own `bytes` are not looked at.
  using BytesOf = std::function<std::span<const std::byte>(const TensorShard&)>;
  void write_in_turn(const std::vector<TensorShard>& shards, const BytesOf& bytes_of, uint64_t bytes_of_all_ranks = 0);

 private:
  Path folder_;
  int64_t step_;
  int64_t rank_;
  FileSystem& files_;
};

struct Progress {
  int64_t consumed_samples = 0;
  nlohmann::json state = nlohmann::json::object();  // finite numbers only: JSON has no others
};

// Makes the checkpoint of `world` ranks visible and returns its folder. Failure naming the rank whose part is missing,
// or the tensor that has a gap, an overlap or different shapes in two ranks.
Path publish(const Path& folder, int64_t step, int64_t world, const Progress& progress,
             FileSystem& files = real_file_system());

}  // namespace ridgeline::checkpoint
