#include "checkpoint/choose.h"

#include "checkpoint/step_folder.h"
#include "checkpoint/store.h"
#include "core/error.h"

namespace ridgeline::checkpoint {

Path checkpoint_folder(const Path& path) {
  if (!std::filesystem::is_directory(path)) {
    throw InputError("{}: no such folder; expected a run folder, its checkpoints/, or one checkpoint in it",
                     path.string());
  }
  const Path inside = path / "checkpoints";
  return std::filesystem::is_directory(inside) ? inside : path;
}

Path choose_checkpoint(const Path& path) {
  const Path folder = checkpoint_folder(path);
  if (std::filesystem::exists(folder / kManifestName)) return folder;
  const auto newest = newest_complete(folder);
  if (!newest) {
    throw InputError("{}: holds no complete checkpoint; `ridgeline checkpoint list {}` says why", path.string(),
                     path.string());
  }
  return *newest;
}

}  // namespace ridgeline::checkpoint
