// read_text_file: the whole of a file that is hostile until checked.
//
// Regular files and pipes are read, up to a limit; a missing file, a folder, a device or a larger file is an InputError
// that names the path, what is wrong and what was expected.
#pragma once

#include <cstddef>
#include <string>

namespace ridgeline {

inline constexpr size_t kLargestConfig = size_t{1} << 20;  // 1 MiB, of anything that people write

// `expected` completes the error text: "a TOML file".
std::string read_text_file(const std::string& path, const std::string& expected, size_t limit = kLargestConfig);

}  // namespace ridgeline
