#include "checkpoint/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <tuple>

#include "checkpoint/manifest.h"
#include "checkpoint/step_folder.h"
#include "core/error.h"

namespace ridgeline::checkpoint {
namespace {

// Two steps, so that a removal that dies half way leaves nothing that looks like a checkpoint.
void remove_checkpoint(const Path& path, int64_t step, FileSystem& files) {
  const Path doomed = path.parent_path() / step_folder_name(step, FolderState::removed);
  files.remove_folder(doomed);
  files.rename(path, doomed);
  files.remove_folder(doomed);
}

}  // namespace

std::optional<std::string> find_damage(const Path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path / kManifestName, error)) return fmt::format("it has no {}", kManifestName);
  Manifest manifest;
  try {
    manifest = read_manifest(path / kManifestName);
  } catch (const Error& fault) {
    return fault.what();
  }
  for (const FileRecord& file : manifest.files) {
    const uint64_t size = std::filesystem::file_size(path / file.name, error);
    if (error) return fmt::format("its file {} cannot be found: {}", file.name, error.message());
    if (size != file.size) return fmt::format("its file {} has {} bytes, expected {}", file.name, size, file.size);
  }
  return std::nullopt;
}

std::vector<Path> list_checkpoints(const Path& folder) {
  std::vector<StepFolder> found;
  for (const std::string& name : list_folder(folder)) {
    const std::optional<StepFolder> entry = parse_step_folder(name);
    if (!entry) continue;
    if (entry->state == FolderState::complete || entry->state == FolderState::replaced) found.push_back(*entry);
  }
  std::sort(found.begin(), found.end(), [](const StepFolder& left, const StepFolder& right) {
    return std::tie(right.step, left.state) < std::tie(left.step, right.state);
  });
  std::vector<Path> paths;
  for (const StepFolder& entry : found) paths.push_back(folder / step_folder_name(entry.step, entry.state));
  return paths;
}

std::optional<Path> newest_complete(const Path& folder, const Report& skipped) {
  for (const Path& path : list_checkpoints(folder)) {
    const std::optional<std::string> damage = find_damage(path);
    if (!damage) return path;
    if (skipped) skipped(fmt::format("checkpoint {} is not usable: {}", path.string(), *damage));
  }
  return std::nullopt;
}

void prune(const Path& folder, int64_t keep, FileSystem& files) {
  if (keep <= 0) return;
  int64_t kept = 0;
  for (const Path& path : list_checkpoints(folder)) {
    if (kept >= keep) {
      remove_checkpoint(path, parse_step_folder(path.filename().string())->step, files);
    } else if (!find_damage(path)) {
      ++kept;
    }
  }
}

void clean_leftovers(const Path& folder, int64_t step, FileSystem& files) {
  for (const std::string& name : list_folder(folder)) {
    const std::optional<StepFolder> entry = parse_step_folder(name);
    if (!entry) continue;
    const bool dead = entry->state == FolderState::removed ||
                      (entry->state == FolderState::temporary && entry->step != step) ||
                      (entry->state == FolderState::replaced && !find_damage(folder / step_folder_name(entry->step)));
    if (dead) files.remove_folder(folder / name);
  }
}

}  // namespace ridgeline::checkpoint
