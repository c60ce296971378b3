// The frame of a main function: errors become a line on stderr and an exit code.
//
// Exit codes: 0 done, 1 failed, 2 the input was wrong, 3 interrupted after saving.
#pragma once

#include <functional>

namespace ridgeline::cli {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kInterrupted = 3;

int guarded(const std::function<int()>& body);

}  // namespace ridgeline::cli
