#include "core/error.h"
#include "core/json_input.h"
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
  const json document = parse_json(text, file, kDeepestForeignNesting);
  if (!document.is_object()) throw InputError("{}: expected a JSON object at its top", file);
  std::vector<Setting> settings;
  flatten(document, "", file, settings);
  return settings;
}

}  // namespace ridgeline::spec
