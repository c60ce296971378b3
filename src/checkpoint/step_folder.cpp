#include "checkpoint/step_folder.h"

#include <fmt/format.h>

#include <charconv>

namespace ridgeline::checkpoint {
namespace {

const char* suffix(FolderState state) {
  switch (state) {
    case FolderState::complete:
      return "";
    case FolderState::temporary:
      return ".tmp";
    case FolderState::replaced:
      return ".replaced";
    case FolderState::removed:
      return ".removed";
  }
  return "";
}

}  // namespace

std::string step_folder_name(int64_t step, FolderState state) {
  return fmt::format("step-{:08}{}", step, suffix(state));
}

std::optional<StepFolder> parse_step_folder(std::string_view name) {
  constexpr std::string_view kPrefix = "step-";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  int64_t step = 0;
  auto [end, error] = std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), step);
  if (error != std::errc() || step < 0) return std::nullopt;
  for (FolderState state :
       {FolderState::complete, FolderState::temporary, FolderState::replaced, FolderState::removed}) {
    // Comparing the whole name refuses other spellings of the same number.
    if (name == step_folder_name(step, state)) return StepFolder{step, state};
  }
  return std::nullopt;
}

std::string rank_file_name(int64_t rank) { return fmt::format("rank-{:05}.safetensors", rank); }

std::string rank_index_name(int64_t rank) { return fmt::format("rank-{:05}.json", rank); }

}  // namespace ridgeline::checkpoint
