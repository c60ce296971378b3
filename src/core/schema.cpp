#include "core/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/schema_key.h"
#include "core/text.h"

namespace ridgeline {

bool Interval::contains(double value) const {
  if (!std::isfinite(value)) return false;
  return (low_open ? value > low : value >= low) && (high_open ? value < high : value <= high);
}

std::string Interval::to_string() const {
  const bool has_low = std::isfinite(low);
  const bool has_high = std::isfinite(high);
  if (has_low && has_high) {
    return fmt::format("{}{} to {}{}", low_open ? "above " : "", low, high_open ? "below " : "", high);
  }
  if (has_low) return fmt::format("{} {}", low_open ? ">" : ">=", low);
  if (has_high) return fmt::format("{} {}", high_open ? "<" : "<=", high);
  return "";
}

Interval any_number() { return {}; }
Interval at_least(double low) { return {.low = low}; }
Interval above(double low) { return {.low = low, .low_open = true}; }
Interval between(double low, double high) { return {.low = low, .high = high}; }
Interval from_below(double low, double high) { return {.low = low, .high = high, .high_open = true}; }

std::string Sources::of(const std::string& key) const {
  const auto found = sources_.find(key);
  return found == sources_.end() ? "default" : found->second;
}

void Sources::located(const std::function<void()>& check) const {
  try {
    check();
  } catch (const InputError& error) {
    const std::string text = error.what();
    constexpr const char* kNameCharacters = "abcdefghijklmnopqrstuvwxyz0123456789_.";
    for (size_t begin = 0; (begin = text.find_first_of(kNameCharacters, begin)) != std::string::npos;) {
      const size_t end = std::min(text.find_first_not_of(kNameCharacters, begin), text.size());
      const auto found = sources_.find(text.substr(begin, end - begin));
      if (found != sources_.end()) throw InputError("{}: {}", found->second, text);
      begin = end;
    }
    throw;
  }
}

Schema::Schema() = default;
Schema::~Schema() = default;

std::string Schema::Key::expected() const {
  if (type == Type::boolean) return "true or false";
  if (type == Type::string) return "a string";
  if (type == Type::words) return "a string, an integer, true, false or a list of them";
  if (type == Type::choice) return fmt::format("one of '{}'", join(names, "', '"));
  const std::string range = allowed.to_string();
  const char* noun = type == Type::integer ? "an integer" : type == Type::number ? "a number" : "a list of integers";
  return range.empty() ? noun : fmt::format("{} {}{}", noun, type == Type::integers ? "each " : "", range);
}

namespace {

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char character : text) {
    const auto code = static_cast<unsigned char>(character);
    if (character == '"' || character == '\\') {
      result += '\\';
      result += character;
    } else if (code < 0x20 || code == 0x7f) {
      result += fmt::format("\\u{:04X}", static_cast<unsigned>(code));
    } else {
      result += character;
    }
  }
  return result + "\"";
}

std::string float_text(double value) {
  std::string text = fmt::format("{}", value);
  const bool is_float = text.find_first_of(".en") != std::string::npos;  // n: inf and nan
  return is_float ? text : text + ".0";
}

struct TomlText {
  std::string operator()(int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const { return float_text(value); }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(const std::string& value) const { return quoted(value); }
  std::string operator()(const std::vector<int64_t>& values) const {
    std::vector<std::string> words;
    for (const int64_t value : values) words.push_back(fmt::format("{}", value));
    return fmt::format("[{}]", join(words));
  }
  std::string operator()(const std::vector<std::string>& values) const {
    std::vector<std::string> words;
    for (const std::string& value : values) words.push_back(quoted(value));
    return fmt::format("[{}]", join(words));
  }
};

}  // namespace

std::string Schema::Key::to_toml(const Value& value) { return std::visit(TomlText(), value); }

void Schema::table(const std::string& name, const std::string& doc) {
  RIDGELINE_ASSERT(!has_table(name) && name.find('.') == std::string::npos);
  tables_.push_back({name, doc});
}

bool Schema::has_table(const std::string& name) const {
  return std::any_of(tables_.begin(), tables_.end(), [&](const Table& table) { return table.name == name; });
}

void Schema::declare(Key key) {
  RIDGELINE_ASSERT(find(key.name) == nullptr && has_table(key.table()) && !key.leaf().empty());
  key.default_text = Key::to_toml(key.get());
  keys_.push_back(std::move(key));
}

void Schema::key(const std::string& name, int64_t& target, const std::string& doc, Interval allowed) {
  declare({.name = name,
           .doc = doc,
           .type = Key::Type::integer,
           .allowed = allowed,
           .get = [&target] { return Value(target); },
           .set = [&target](const Value& value) { target = std::get<int64_t>(value); }});
}

void Schema::key(const std::string& name, uint64_t& target, const std::string& doc, Interval allowed) {
  allowed.low = std::max(allowed.low, 0.0);
  declare({.name = name,
           .doc = doc,
           .type = Key::Type::integer,
           .allowed = allowed,
           .get = [&target] { return Value(static_cast<int64_t>(target)); },
           .set = [&target](const Value& value) { target = static_cast<uint64_t>(std::get<int64_t>(value)); }});
}

void Schema::key(const std::string& name, double& target, const std::string& doc, Interval allowed) {
  declare({.name = name,
           .doc = doc,
           .type = Key::Type::number,
           .allowed = allowed,
           .get = [&target] { return Value(target); },
           .set = [&target](const Value& value) { target = std::get<double>(value); }});
}

void Schema::key(const std::string& name, bool& target, const std::string& doc) {
  declare({.name = name,
           .doc = doc,
           .type = Key::Type::boolean,
           .get = [&target] { return Value(target); },
           .set = [&target](const Value& value) { target = std::get<bool>(value); }});
}

void Schema::key(const std::string& name, std::string& target, const std::string& doc) {
  declare({.name = name,
           .doc = doc,
           .type = Key::Type::string,
           .get = [&target] { return Value(target); },
           .set = [&target](const Value& value) { target = std::get<std::string>(value); }});
}

void Schema::key(const std::string& name, std::vector<int64_t>& target, const std::string& doc, Interval allowed) {
  declare({.name = name,
           .doc = doc,
           .type = Key::Type::integers,
           .allowed = allowed,
           .get = [&target] { return Value(target); },
           .set = [&target](const Value& value) { target = std::get<std::vector<int64_t>>(value); }});
}

void Schema::words(const std::string& name, std::vector<std::string>& target, const std::string& doc) {
  declare({.name = name,
           .doc = doc,
           .type = Key::Type::words,
           .get = [&target] { return Value(target); },
           .set = [&target](const Value& value) { target = std::get<std::vector<std::string>>(value); }});
}

void Schema::choice(const std::string& name, std::string& target, std::vector<std::string> names,
                    const std::string& doc) {
  declare_choice(
      name, std::move(names), [&target] { return target; }, [&target](const std::string& chosen) { target = chosen; },
      doc);
}

void Schema::declare_choice(const std::string& name, std::vector<std::string> names, std::function<std::string()> get,
                            std::function<void(const std::string&)> set, const std::string& doc) {
  declare({.name = name,
           .doc = doc,
           .type = Key::Type::choice,
           .names = std::move(names),
           .get = [get = std::move(get)] { return Value(get()); },
           .set = [set = std::move(set)](const Value& value) { set(std::get<std::string>(value)); }});
}

void Schema::after(const std::string& name, std::function<void()> action) {
  Key* key = find(name);
  RIDGELINE_ASSERT(key != nullptr);
  key->after = std::move(action);
}

Schema::Key* Schema::find(const std::string& name) {
  const auto found = std::find_if(keys_.begin(), keys_.end(), [&](const Key& key) { return key.name == name; });
  return found == keys_.end() ? nullptr : &*found;
}

const Schema::Key* Schema::find(const std::string& name) const { return const_cast<Schema*>(this)->find(name); }

void Schema::give(Key& key, Value value, std::string text, std::string source) {
  if (key.given) {
    overrides_.push_back(
        fmt::format("{} = {} ({}) replaces {} ({})", key.name, text, source, key.given_text, sources_.of(key.name)));
  }
  key.given = std::move(value);
  key.given_text = std::move(text);
  sources_.record(key.name, std::move(source));
}

void Schema::apply() {
  for (Key& key : keys_) {
    if (!key.given) continue;
    key.set(*key.given);
    if (key.after) sources_.located(key.after);
  }
}

std::vector<std::string> Schema::overrides() const { return overrides_; }

std::vector<std::string> Schema::names() const {
  std::vector<std::string> names;
  for (const Key& key : keys_) names.push_back(key.name);
  return names;
}

}  // namespace ridgeline
