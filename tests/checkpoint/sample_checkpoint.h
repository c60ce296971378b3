// A small checkpoint whose content follows from its step and a salt, written by any number of ranks.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "checkpoint/reader.h"
#include "checkpoint/writer.h"

namespace ridgeline::checkpoint {

struct SampleTensor {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  std::vector<int32_t> values;
};

inline std::vector<SampleTensor> sample_tensors(int32_t salt) {
  std::vector<SampleTensor> tensors = {{"layers.0.weight", DType::F32, {7, 6}, {}},
                                       {"layers.0.bias", DType::I32, {5}, {}},
                                       {"loss_scale", DType::F32, {}, {}}};
  for (SampleTensor& tensor : tensors) {
    tensor.values.resize(static_cast<size_t>(*checked_elements(tensor.shape)));
    for (size_t index = 0; index < tensor.values.size(); ++index) {
      tensor.values[index] = salt * 1000 + static_cast<int32_t>(index * 10 + tensor.name.size());
    }
  }
  return tensors;
}

// The slice of `shape` that rank `rank` of `world` holds: columns are halved where there are two dimensions and an even
// world, what is left is cut flat.
inline Slice sample_slice(const std::vector<int64_t>& shape, int64_t world, int64_t rank) {
  Slice slice = whole_slice(shape);
  if (shape.size() == 2 && world % 2 == 0) {
    const spec::Range columns = spec::split_range(shape[1], 2, rank % 2);
    slice = box_slice({{0, columns.begin}, {shape[0], columns.size()}});
    rank /= 2;
    world /= 2;
  }
  slice.range = spec::split_range(slice.elements(), world, rank);
  return slice;
}

inline std::vector<std::byte> cut(const SampleTensor& tensor, const Slice& slice) {
  std::vector<std::byte> bytes(static_cast<size_t>(slice.elements()) * 4);
  copy_slice(whole_slice(tensor.shape), std::as_bytes(std::span(tensor.values)), slice, bytes, 4);
  return bytes;
}

inline void write_sample_rank(const Path& folder, int64_t step, int64_t world, int64_t rank, int32_t salt,
                              FileSystem& files = real_file_system()) {
  const std::vector<SampleTensor> tensors = sample_tensors(salt);
  std::vector<std::vector<std::byte>> storage;
  std::vector<TensorShard> shards;
  for (const SampleTensor& tensor : tensors) {
    const Slice slice = sample_slice(tensor.shape, world, rank);
    storage.push_back(cut(tensor, slice));
    shards.push_back({tensor.name, tensor.dtype, tensor.shape, slice, storage.back()});
  }
  ShardWriter(folder, step, rank, files).write(shards);
}

inline Path save_sample(const Path& folder, int64_t step, int64_t world, int32_t salt,
                        FileSystem& files = real_file_system()) {
  for (int64_t rank = 0; rank < world; ++rank) write_sample_rank(folder, step, world, rank, salt, files);
  return publish(folder, step, world, {step * 8, {{"salt", salt}}}, files);
}

// Fails the test unless the checkpoint is that of `step` and `salt`, whole, when read by `world` ranks.
inline void expect_sample(const Path& path, int64_t step, int32_t salt, int64_t world = 3) {
  CheckpointReader reader(path);
  EXPECT_EQ(reader.manifest().step, step);
  EXPECT_EQ(reader.manifest().consumed_samples, step * 8);
  EXPECT_EQ(reader.manifest().state["salt"], salt);
  EXPECT_EQ(reader.verify(), std::vector<std::string>{});
  for (const SampleTensor& tensor : sample_tensors(salt)) {
    for (int64_t rank = 0; rank < world; ++rank) {
      const Slice slice = sample_slice(tensor.shape, world, rank);
      std::vector<std::byte> bytes(static_cast<size_t>(slice.elements()) * 4);
      reader.read(tensor.name, tensor.dtype, tensor.shape, slice, bytes);
      EXPECT_EQ(bytes, cut(tensor, slice)) << tensor.name << " rank " << rank << " of " << world;
    }
  }
}

}  // namespace ridgeline::checkpoint
