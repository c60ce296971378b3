// The program that computes with tensors.
#pragma once

#include <string>
#include <vector>

namespace ridgeline::cli {

// Path of ridgeline-engine: $RIDGELINE_ENGINE, beside this program, or in ../libexec/ridgeline. Throws Failure.
std::string find_engine();

// Becomes that program. Throws Failure where it cannot be started.
[[noreturn]] void become(const std::vector<std::string>& command);

}  // namespace ridgeline::cli
