#include "checkpoint/json_input.h"

#include <limits>
#include <set>

#include "core/error.h"

namespace ridgeline::checkpoint {
namespace {

using nlohmann::json;

bool is_count(const json& value) {
  return value.is_number_unsigned() &&
         value.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
}

[[noreturn]] void refuse(const json& value, const char* key, const std::string& where, const char* expected) {
  std::string found = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (found.size() > 60) found = found.substr(0, 57) + "...";
  throw InputError("{}: \"{}\" is {}, expected {}", where, key, found, expected);
}

}  // namespace

json parse_json(std::string_view text, const std::string& where, int max_depth) {
  std::vector<std::set<std::string>> keys;  // seen so far, of each object that is open
  auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > max_depth) throw InputError("{}: JSON nests deeper than {} levels", where, max_depth);
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second) {
      throw InputError("{}: the key \"{}\" stands there twice", where, parsed.get<std::string>());
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

TensorKind json_tensor_kind(const nlohmann::json& tensor, const std::string& where) {
  const std::string name = json_string(tensor, "dtype", where);
  const std::optional<DType> dtype = parse_dtype(name);
  if (!dtype) throw InputError("{}: dtype \"{}\", expected one of {}", where, name, known_dtypes());
  TensorKind kind{*dtype, json_counts(tensor, "shape", where)};
  if (!checked_bytes(kind.shape, kind.dtype)) {
    throw InputError("{}: shape {} is too large", where, shape_text(kind.shape));
  }
  return kind;
}

}  // namespace ridgeline::checkpoint
