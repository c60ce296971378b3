#include "core/json_input.h"

#include <limits>
#include <set>

#include "core/error.h"
#include "core/text.h"

namespace ridgeline {
namespace {

using nlohmann::json;

bool is_count(const json& value) {
  return value.is_number_unsigned() &&
         value.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
}

[[noreturn]] void refuse(const json& value, const char* key, const std::string& where, const char* expected) {
  const std::string found = value.dump(-1, ' ', false, json::error_handler_t::replace);
  throw InputError("{}: \"{}\" is {}, expected {}", where, key, shortened(found), expected);
}

}  // namespace

json parse_json(std::string_view text, const std::string& where, int max_depth) {
  std::vector<std::set<std::string>> keys;  // seen so far, of each object that is open
  auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > max_depth) throw InputError("{}: JSON nests deeper than {} levels", where, max_depth);
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second) {
      throw InputError("{}: the key \"{}\" stands there twice; keep one", where, shortened(parsed.get<std::string>()));
    }
    return true;
  };
  try {
    return json::parse(text.begin(), text.end(), watch);
  } catch (const json::exception& error) {
    throw InputError("{}: not valid JSON: {}", where, error.what());
  }
}

const json& json_field(const json& object, const char* key, const std::string& where) {
  if (!object.is_object()) throw InputError("{}: expected a JSON object with the key \"{}\"", where, key);
  auto found = object.find(key);
  if (found == object.end()) throw InputError("{}: the key \"{}\" is missing", where, key);
  return *found;
}

std::string json_string(const json& object, const char* key, const std::string& where) {
  const json& value = json_field(object, key, where);
  if (!value.is_string()) refuse(value, key, where, "a string");
  return value.get<std::string>();
}

int64_t json_count(const json& object, const char* key, const std::string& where) {
  const json& value = json_field(object, key, where);
  if (!is_count(value)) refuse(value, key, where, "a whole number from 0 to 2^63 - 1");
  return value.get<int64_t>();
}

const json& json_array(const json& object, const char* key, const std::string& where) {
  const json& value = json_field(object, key, where);
  if (!value.is_array()) refuse(value, key, where, "a list");
  return value;
}

const json& json_object(const json& object, const char* key, const std::string& where) {
  const json& value = json_field(object, key, where);
  if (!value.is_object()) refuse(value, key, where, "an object");
  return value;
}

std::vector<int64_t> json_counts(const json& object, const char* key, const std::string& where) {
  std::vector<int64_t> counts;
  const json& list = json_array(object, key, where);
  for (const json& value : list) {
    if (!is_count(value)) refuse(list, key, where, "whole numbers from 0 to 2^63 - 1");
    counts.push_back(value.get<int64_t>());
  }
  return counts;
}

}  // namespace ridgeline
