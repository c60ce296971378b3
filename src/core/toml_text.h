// TOML from users: bounded in depth, refused with file and line.
#pragma once

#include <toml++/toml.h>

#include <string>
#include <string_view>

namespace ridgeline {

// Throws InputError with `file_name` and line where it is not TOML, or a dotted name is too deep.
toml::table parse_toml(std::string_view text, const std::string& file_name);

}  // namespace ridgeline
