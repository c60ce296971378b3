#include "cli/find_engine.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/error.h"

namespace ridgeline::cli {

std::string find_engine() {
  const char* chosen = std::getenv("RIDGELINE_ENGINE");
  if (chosen != nullptr && *chosen != '\0') return chosen;
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  if (error) throw Failure("cannot read /proc/self/exe: {}", error.message());
  const auto beside = folder / "ridgeline-engine";
  const auto installed = folder.parent_path() / "libexec" / "ridgeline" / "ridgeline-engine";
  for (const auto& path : {beside, installed}) {
    if (access(path.c_str(), X_OK) == 0) return path.string();
  }
  throw Failure(
      "no ridgeline-engine at {} or {}: this command needs it; build with -DRIDGELINE_TORCH_ROOMS=ON, or set "
      "RIDGELINE_ENGINE to its path",
      beside.string(), installed.string());
}

void become(const std::vector<std::string>& command) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execv(words[0], words.data());
  throw Failure("cannot start {}: {}", command.front(), std::strerror(errno));
}

}  // namespace ridgeline::cli
