#include "train/run_lock.h"

#include <fmt/format.h>

namespace ridgeline::train {

RunLock::RunLock(const std::filesystem::path& folder, double patience)
    : lock_(folder / "lock", patience, [&folder](const std::string& owner) {
        return fmt::format(
            "training.run = \"{}\": another job is training there ({}). Wait for it or stop it, or give this one a "
            "folder of its own; if it is surely gone, remove {}",
            folder.string(), owner, (folder / "lock").string());
      }) {}

}  // namespace ridgeline::train
