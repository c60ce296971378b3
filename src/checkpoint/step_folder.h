// Names inside a folder of checkpoints.
//
//   step-00000100            a checkpoint, complete
//   step-00000100.tmp        one that is being written, or was when the run died: never read, removed by the next save
//   step-00000100.replaced   an earlier checkpoint of a step that was saved again, between two renames: read where the
//                            plain name is missing
//   step-00000100.removed    one that is being removed: never read
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ridgeline::checkpoint {

enum class FolderState { complete, temporary, replaced, removed };

struct StepFolder {
  int64_t step = 0;
  FolderState state = FolderState::complete;
  bool operator==(const StepFolder&) const = default;
};

std::string step_folder_name(int64_t step, FolderState state = FolderState::complete);
std::optional<StepFolder> parse_step_folder(std::string_view name);  // nothing for any other name

std::string rank_file_name(int64_t rank);   // rank-00003.safetensors
std::string rank_index_name(int64_t rank);  // rank-00003.json
inline constexpr const char* kManifestName = "manifest.json";

}  // namespace ridgeline::checkpoint
