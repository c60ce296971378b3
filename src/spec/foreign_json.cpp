#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "spec/foreign_text.h"

namespace ridgeline::spec {
namespace {

using nlohmann::json;

std::string pointer_token(const std::string& key) {
  std::string token = "/";
  for (const char character : key) {
    if (character == '~') {
      token += "~0";
    } else if (character == '/') {
      token += "~1";
    } else {
      token += character;
    }
  }
  return token;
}

Setting::Type type_of(const json& value) {
  if (value.is_null()) return Setting::Type::null;
  if (value.is_boolean()) return Setting::Type::boolean;
  if (value.is_number_integer()) return Setting::Type::integer;
  if (value.is_number()) return Setting::Type::number;
  return value.is_string() ? Setting::Type::string : Setting::Type::list;
}

// The depth of `value` was bounded when it was parsed.
void flatten(const json& value, const std::string& name, const std::string& file, std::vector<Setting>& settings) {
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) flatten(member, name + pointer_token(key), file, settings);
    return;
  }
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  settings.push_back({.name = name, .text = text, .type = type_of(value), .where = file});
}

}  // namespace

std::vector<Setting> settings_of_json(std::string_view text, const std::string& file) {
  std::vector<std::set<std::string>> keys;  // seen so far, of each object that is open
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > kDeepestForeignNesting) {
      throw InputError("{}: JSON nests deeper than {} levels", file, kDeepestForeignNesting);
    }
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second) {
      throw InputError("{}: the key \"{}\" stands there twice; keep one", file, shortened(parsed.get<std::string>()));
    }
    return true;
  };
  std::vector<Setting> settings;
  try {
    const json document = json::parse(text.begin(), text.end(), watch);
    if (!document.is_object()) throw InputError("{}: expected a JSON object at its top", file);
    flatten(document, "", file, settings);
  } catch (const json::exception& error) {
    throw InputError("{}: not valid JSON: {}", file, error.what());
  }
  return settings;
}

}  // namespace ridgeline::spec
