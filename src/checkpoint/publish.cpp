#include <fmt/format.h>

#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "checkpoint/coverage.h"
#include "checkpoint/manifest.h"
#include "checkpoint/step_folder.h"
#include "checkpoint/writer.h"
#include "core/error.h"

namespace ridgeline::checkpoint {
namespace {

Manifest read_index(const Path& temporary, int64_t step, int64_t rank) {
  const Path path = temporary / rank_index_name(rank);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    throw Failure(
        "cannot publish the checkpoint of step {}: rank {} left no {}; it failed to write its part, or does not "
        "see the same folder",
        step, rank, path.string());
  }
  Manifest index = read_manifest(path);
  if (index.step != step || index.files.size() != 1 || index.files[0].name != rank_file_name(rank)) {
    throw Failure("cannot publish the checkpoint of step {}: {} is not the index of rank {} and this step", step,
                  path.string(), rank);
  }
  const uint64_t size = std::filesystem::file_size(temporary / index.files[0].name, error);
  if (error || size != index.files[0].size) {
    throw Failure("cannot publish the checkpoint of step {}: {} has {} bytes, expected {}", step,
                  (temporary / index.files[0].name).string(), error ? 0 : size, index.files[0].size);
  }
  return index;
}

void add_index(Manifest index, int64_t rank, Manifest& manifest, std::map<std::string, TensorRecord>& tensors) {
  for (TensorRecord& part : index.tensors) {
    auto [found, added] = tensors.try_emplace(part.name, TensorRecord{part.name, part.dtype, part.shape, {}});
    TensorRecord& whole = found->second;
    if (whole.dtype != part.dtype || whole.shape != part.shape) {
      throw Failure(
          "cannot publish the checkpoint of step {}: tensor \"{}\" is {} {} in rank {}, but {} {} in lower ranks",
          manifest.step, part.name, to_string(part.dtype), shape_text(part.shape), rank, to_string(whole.dtype),
          shape_text(whole.shape));
    }
    for (Piece& piece : part.pieces) {
      piece.file = rank;
      whole.pieces.push_back(std::move(piece));
    }
  }
  manifest.files.push_back(std::move(index.files[0]));
}

void check_cover(const TensorRecord& tensor, int64_t step) {
  std::vector<Slice> slices;
  for (const Piece& piece : tensor.pieces) slices.push_back(piece.slice);
  if (auto gap = first_gap(whole_slice(tensor.shape), slices)) {
    throw Failure("cannot publish the checkpoint of step {}: no rank wrote {} of tensor \"{}\" {}", step,
                  to_string(box_slice(*gap)), tensor.name, shape_text(tensor.shape));
  }
  if (auto overlap = first_overlap(slices)) {
    throw Failure("cannot publish the checkpoint of step {}: {} of tensor \"{}\" {} was written more than once", step,
                  to_string(box_slice(*overlap)), tensor.name, shape_text(tensor.shape));
  }
}

Manifest merge_indices(const Path& temporary, int64_t step, int64_t world, const Progress& progress) {
  Manifest manifest;
  manifest.step = step;
  manifest.consumed_samples = progress.consumed_samples;
  manifest.state = progress.state;
  std::map<std::string, TensorRecord> tensors;
  for (int64_t rank = 0; rank < world; ++rank) {
    add_index(read_index(temporary, step, rank), rank, manifest, tensors);
  }
  for (auto& [name, tensor] : tensors) {
    check_cover(tensor, step);
    manifest.tensors.push_back(std::move(tensor));
  }
  return manifest;
}

// Files that an interrupted save of this step with more ranks left.
void remove_strangers(const Path& temporary, int64_t world, FileSystem& files) {
  std::set<std::string> ours;
  for (int64_t rank = 0; rank < world; ++rank) ours.insert({rank_file_name(rank), rank_index_name(rank)});
  for (const std::string& name : list_folder(temporary)) {
    if (!ours.contains(name)) files.remove_file(temporary / name);
  }
}

// Frees the final name. A whole checkpoint under it stays readable under another until the new one has taken its place.
void set_aside(const Path& folder, int64_t step, FileSystem& files) {
  const Path final = folder / step_folder_name(step);
  const Path aside = folder / step_folder_name(step, FolderState::replaced);
  std::error_code error;
  if (!std::filesystem::exists(final, error)) return;
  if (find_damage(final) && std::filesystem::exists(aside, error)) {
    files.remove_folder(final);
    return;
  }
  files.remove_folder(aside);
  files.rename(final, aside);
}

}  // namespace

Path publish(const Path& folder, int64_t step, int64_t world, const Progress& progress, FileSystem& files) {
  const Path temporary = folder / step_folder_name(step, FolderState::temporary);
  const Path final = folder / step_folder_name(step);
  const Manifest manifest = merge_indices(temporary, step, world, progress);
  remove_strangers(temporary, world, files);
  write_text(files, temporary / kManifestName, encode_manifest(manifest));
  files.sync_directory(temporary);

  set_aside(folder, step, files);
  files.rename(temporary, final);
  files.sync_directory(folder);

  // The checkpoint exists; what follows is tidying. The manifest holds all that the indices say.
  for (int64_t rank = 0; rank < world; ++rank) files.remove_file(final / rank_index_name(rank));
  files.remove_folder(folder / step_folder_name(step, FolderState::replaced));
  clean_leftovers(folder, -1, files);
  return final;
}

}  // namespace ridgeline::checkpoint
