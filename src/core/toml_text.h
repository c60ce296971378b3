// Text files and TOML from users: bounded in size and depth, refused with file and line.
#pragma once

#include <toml++/toml.h>

#include <string>
#include <string_view>

namespace ridgeline {

// The whole of a text file of at most 1 MiB. `expected` completes the error text: "a TOML file".
std::string read_text_file(const std::string& path, const std::string& expected);

// Throws InputError with `file_name` and line where it is not TOML, or a dotted name is too deep.
toml::table parse_toml(std::string_view text, const std::string& file_name);

}  // namespace ridgeline
