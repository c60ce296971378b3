#include "checkpoint/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "checkpoint/manifest.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/step_folder.h"
#include "core/error.h"
#include "core/text.h"

namespace ridgeline::checkpoint {
namespace {

void check_shard(const TensorShard& shard) {
  if (auto fault = find_fault(shard.slice, shard.shape)) {
    throw InternalError("checkpoint: tensor \"{}\" is saved with a slice where {}", shard.name, *fault);
  }
}

void check_bytes(const TensorShard& shard, std::span<const std::byte> bytes) {
  const uint64_t expected = static_cast<uint64_t>(shard.slice.elements() * element_size(shard.dtype));
  if (bytes.size() == expected) return;
  throw InternalError("checkpoint: tensor \"{}\", slice {}, is saved with {} bytes, expected {}", shard.name,
                      to_string(shard.slice), bytes.size(), expected);
}

// The tensor's name where that is free, so that files read by other programs show familiar names.
std::string unused_key(const std::string& name, const std::unordered_map<std::string, size_t>& used) {
  std::string key = name;
  for (int number = 1; used.contains(key); ++number) key = fmt::format("{}#{}", name, number);
  return key;
}

// The file's header, and for each of its keys the shard that it holds.
struct FilePlan {
  SafetensorsHeader header;
  std::unordered_map<std::string, size_t> shard_of_key;
};

FilePlan plan_file(const std::vector<TensorShard>& shards, int64_t step, int64_t rank) {
  FilePlan plan;
  std::vector<TensorEntry> entries;
  for (size_t number = 0; number < shards.size(); ++number) {
    const TensorShard& shard = shards[number];
    check_shard(shard);
    const bool whole_box = shard.slice == box_slice(shard.slice.box);
    const std::string key = unused_key(shard.name, plan.shard_of_key);
    plan.shard_of_key[key] = number;
    // A range inside a box is no rectangle: it is stored as a row of elements.
    entries.push_back(
        {key, shard.dtype, whole_box ? shard.slice.box.extent : std::vector<int64_t>{shard.slice.elements()}, 0, 0});
  }
  plan.header = plan_safetensors(std::move(entries),
                                 {{"format", "pt"}, {"step", std::to_string(step)}, {"rank", std::to_string(rank)}});
  return plan;
}

FileDigest write_file(const std::vector<TensorShard>& shards, const ShardWriter::BytesOf& bytes_of, FilePlan& plan,
                      const Path& path, FileSystem& files) {
  SafetensorsWriter writer(files, path, plan.header);
  for (const TensorEntry& entry : plan.header.tensors) {
    const TensorShard& shard = shards[plan.shard_of_key.at(entry.name)];
    const std::span<const std::byte> bytes = bytes_of(shard);
    check_bytes(shard, bytes);
    writer.write(bytes);
  }
  return writer.finish();
}

// A manifest of one file, in which the tensors are grouped and sorted by name.
Manifest make_index(const std::vector<TensorShard>& shards, const FilePlan& plan, int64_t step) {
  std::map<std::string, TensorRecord> tensors;
  for (const TensorEntry& entry : plan.header.tensors) {
    const TensorShard& shard = shards[plan.shard_of_key.at(entry.name)];
    auto [record, added] = tensors.try_emplace(shard.name, TensorRecord{shard.name, shard.dtype, shard.shape, {}});
    if (!added && (record->second.dtype != shard.dtype || record->second.shape != shard.shape)) {
      throw InternalError("checkpoint: two pieces of tensor \"{}\" disagree about its dtype or global shape",
                          shard.name);
    }
    record->second.pieces.push_back({0, entry.name, shard.slice});
  }
  Manifest index;
  index.step = step;
  for (auto& [name, record] : tensors) index.tensors.push_back(std::move(record));
  return index;
}

}  // namespace

ShardWriter::ShardWriter(Path folder, int64_t step, int64_t rank, FileSystem& files)
    : folder_(std::move(folder)), step_(step), rank_(rank), files_(files) {
  RIDGELINE_ASSERT(step >= 0 && rank >= 0);
}

void ShardWriter::write(const std::vector<TensorShard>& shards, uint64_t bytes_of_all_ranks) {
  for (const TensorShard& shard : shards) check_bytes(shard, shard.bytes);
  write_in_turn(shards, [](const TensorShard& shard) { return shard.bytes; }, bytes_of_all_ranks);
}

void ShardWriter::write_in_turn(const std::vector<TensorShard>& shards, const BytesOf& bytes_of,
                                uint64_t bytes_of_all_ranks) {
  FilePlan plan = plan_file(shards, step_, rank_);
  Manifest index = make_index(shards, plan, step_);
  const Path temporary = folder_ / step_folder_name(step_, FolderState::temporary);
  const Path file = temporary / rank_file_name(rank_);
  files_.make_folders(temporary);
  // What a save that died left under this rank's names must not pass for this save's.
  files_.remove_file(temporary / rank_index_name(rank_));
  files_.remove_file(file);
  if (rank_ == 0) clean_leftovers(folder_, step_, files_);

  const uint64_t needed = std::max(plan.header.file_size, bytes_of_all_ranks);
  const uint64_t available = files_.free_bytes(temporary);
  if (needed > available) {
    throw Failure(
        "the checkpoint of step {} needs {} in {}, but only {} are free; free space there, keep fewer "
        "checkpoints (checkpoint.keep) or choose another run folder (training.run)",
        step_, format_bytes(static_cast<double>(needed)), folder_.string(),
        format_bytes(static_cast<double>(available)));
  }
  try {
    const FileDigest digest = write_file(shards, bytes_of, plan, file, files_);
    index.files.push_back({rank_file_name(rank_), digest.size, digest.checksum});
    write_text(files_, temporary / rank_index_name(rank_), encode_manifest(index));
    files_.sync_directory(temporary);
  } catch (const Failure&) {
    // A full disk is the likely reason: give back what this attempt took. The first failure is the one to report.
    try {
      files_.remove_file(file);
    } catch (const Failure&) {
    }
    throw;
  }
}

}  // namespace ridgeline::checkpoint
