// What a Schema keeps of one declared key: private to the sources of core/schema.h.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/schema.h"

namespace ridgeline {

struct Schema::Table {
  std::string name;
  std::string doc;
};

struct Schema::Key {
  enum class Type { integer, number, boolean, string, choice, integers, words };

  std::string name;  // "table.key"
  std::string doc;
  Type type = Type::integer;
  Interval allowed = {};
  std::vector<std::string> names = {};  // of a choice
  std::function<Value()> get;
  std::function<void(const Value&)> set;
  std::function<void()> after = {};

  std::string default_text = {};    // TOML
  std::optional<Value> given = {};  // by file or --set, checked, not yet applied
  std::string given_text = {};      // TOML

  std::string table() const { return name.substr(0, name.find('.') == std::string::npos ? 0 : name.find('.')); }
  std::string leaf() const { return name.substr(name.find('.') + 1); }  // npos + 1 is 0
  std::string expected() const;  // "an integer >= 1", "one of 'a', 'b'"
  static std::string to_toml(const Value& value);
};

}  // namespace ridgeline
