// Texts of the foreign formats as flat lists of settings. Each throws InputError, with the file and where the format
// has lines the line, for text that is not of the format, nests deeper than 32 levels, or has a name twice.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "spec/foreign_reading.h"

namespace ridgeline::spec {

inline constexpr int kDeepestForeignNesting = 32;

// Names are JSON pointers: "/optimizer/params/lr". Lists are values.
std::vector<Setting> settings_of_json(std::string_view text, const std::string& file);
// Names are dotted: "training.seq_len".
std::vector<Setting> settings_of_toml(std::string_view text, const std::string& file);
// The same; aliases and tags are refused.
std::vector<Setting> settings_of_yaml(const std::string& text, const std::string& file);

}  // namespace ridgeline::spec
