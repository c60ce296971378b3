// JSON from files that are hostile until checked: depth is bounded, duplicate keys are refused, and every access says
// the file and the key where something else was found than expected. The text's size is bounded by who reads it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace ridgeline {

// Throws InputError naming `where` for text that is not one JSON document, nests deeper than `max_depth` or repeats a
// key.
nlohmann::json parse_json(std::string_view text, const std::string& where, int max_depth = 64);

// The value at `key` of `object`, InputError where there is none or it is of another type.
const nlohmann::json& json_field(const nlohmann::json& object, const char* key, const std::string& where);
std::string json_string(const nlohmann::json& object, const char* key, const std::string& where);
int64_t json_count(const nlohmann::json& object, const char* key, const std::string& where);  // >= 0
const nlohmann::json& json_array(const nlohmann::json& object, const char* key, const std::string& where);
const nlohmann::json& json_object(const nlohmann::json& object, const char* key, const std::string& where);
std::vector<int64_t> json_counts(const nlohmann::json& object, const char* key, const std::string& where);

}  // namespace ridgeline
