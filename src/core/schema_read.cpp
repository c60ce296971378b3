// Reading side of core/schema.h.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/error.h"
#include "core/schema.h"
#include "core/schema_key.h"
#include "core/text.h"
#include "core/text_file.h"
#include "core/toml_text.h"

namespace ridgeline {
namespace {

// What stands there, for an error text.
std::string found_text(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::string: {
      std::string text = node.as_string()->get();
      if (text.size() > 60) text = text.substr(0, 60) + "...";
      return fmt::format("the string '{}'", text);
    }
    case toml::node_type::integer:
      return fmt::format("the integer {}", node.as_integer()->get());
    case toml::node_type::floating_point:
      return fmt::format("the number {}", node.as_floating_point()->get());
    case toml::node_type::boolean:
      return node.as_boolean()->get() ? "true" : "false";
    case toml::node_type::array:
      return "a list";
    case toml::node_type::table:
      return "a table";
    default:
      return "a date or time";
  }
}

}  // namespace

// Reads one source of values (a file, or one --set) into the schema.
class Schema::Reader {
 public:
  Reader(Schema& schema, std::string file_name) : schema_(schema), file_name_(std::move(file_name)) {}

  void read(const toml::table& root) {
    collect(root, "");
    // The first fault that a reader of the file meets comes first.
    std::stable_sort(leaves_.begin(), leaves_.end(), [](const Leaf& a, const Leaf& b) { return a.line < b.line; });
    for (const Leaf& leaf : leaves_) take(leaf.name, *leaf.node, fmt::format("{}:{}", file_name_, leaf.line));
  }

  void take(const std::string& name, const toml::node& node, const std::string& where) {
    Key* key = schema_.find(name);
    if (key == nullptr) unknown(name, node, where);
    std::optional<Value> value = convert(*key, node);
    if (!value) {
      // For a list the element at fault tells more.
      const bool is_list = key->type == Key::Type::integers || key->type == Key::Type::words;
      const auto* list = is_list ? node.as_array() : nullptr;
      if (list != nullptr) {
        throw InputError("{}: {}: expected {}, found {} in the list", where, name, key->expected(),
                         found_text(first_refused(*key, *list)));
      }
      const bool is_choice = key->type == Key::Type::choice && node.is_string();
      throw InputError("{}: {}: expected {}, found {}{}", where, name, key->expected(), found_text(node),
                       is_choice ? did_you_mean(node.as_string()->get(), key->names) : "");
    }
    std::string text = Key::to_toml(*value);
    schema_.give(*key, std::move(*value), std::move(text), where);
  }

 private:
  struct Leaf {
    std::string name;
    const toml::node* node;
    size_t line;
  };

  // Tables of the schema are walked, everything else is a leaf that take() judges; so the depth is at most two.
  void collect(const toml::table& table, const std::string& prefix) {
    for (const auto& [key, node] : table) {
      const std::string name = prefix + std::string(key.str());
      const bool is_known = prefix.empty() && schema_.has_table(name);
      if (is_known && node.is_table()) {
        collect(*node.as_table(), name + ".");
      } else {
        leaves_.push_back({name, &node, key.source().begin.line});
      }
    }
  }

  std::optional<Value> convert(const Key& key, const toml::node& node) const {
    switch (key.type) {
      case Key::Type::integer:
        if (node.is_integer() && allowed(key, node.as_integer()->get())) return node.as_integer()->get();
        return std::nullopt;
      case Key::Type::number: {
        const auto value = node.is_number() ? node.value<double>() : std::nullopt;
        if (value && key.allowed.contains(*value)) return *value;
        return std::nullopt;
      }
      case Key::Type::boolean:
        if (node.is_boolean()) return node.as_boolean()->get();
        return std::nullopt;
      case Key::Type::string:
        if (node.is_string()) return node.as_string()->get();
        return std::nullopt;
      case Key::Type::choice: {
        const auto text = node.value_exact<std::string>();
        if (text && std::find(key.names.begin(), key.names.end(), *text) != key.names.end()) return *text;
        return std::nullopt;
      }
      case Key::Type::integers:
        return integers(key, node);
      case Key::Type::words:
        return words(key, node);
    }
    return std::nullopt;
  }

  static bool allowed(const Key& key, int64_t value) { return key.allowed.contains(static_cast<double>(value)); }

  std::optional<Value> integers(const Key& key, const toml::node& node) const {
    if (!node.is_array()) return std::nullopt;
    std::vector<int64_t> values;
    for (const toml::node& element : *node.as_array()) {
      if (!is_accepted(key, element)) return std::nullopt;
      values.push_back(element.as_integer()->get());
    }
    return values;
  }

  std::optional<Value> words(const Key& key, const toml::node& node) const {
    std::vector<std::string> values;
    if (is_word(node)) return std::vector<std::string>{word(node)};
    if (!node.is_array()) return std::nullopt;
    for (const toml::node& element : *node.as_array()) {
      if (!is_accepted(key, element)) return std::nullopt;
      values.push_back(word(element));
    }
    return values;
  }

  static bool is_word(const toml::node& node) { return node.is_string() || node.is_integer() || node.is_boolean(); }

  static std::string word(const toml::node& node) {
    if (node.is_string()) return node.as_string()->get();
    if (node.is_boolean()) return node.as_boolean()->get() ? "true" : "false";
    return fmt::format("{}", node.as_integer()->get());
  }

  static bool is_accepted(const Key& key, const toml::node& element) {
    if (key.type == Key::Type::words) return is_word(element);
    return element.is_integer() && allowed(key, element.as_integer()->get());
  }

  static const toml::node& first_refused(const Key& key, const toml::array& list) {
    for (const toml::node& element : list) {
      if (!is_accepted(key, element)) return element;
    }
    return list;
  }

  [[noreturn]] void unknown(const std::string& name, const toml::node& node, const std::string& where) const {
    const std::string table = name.substr(0, name.find('.'));
    if (!name.empty() && schema_.has_table(name)) {
      throw InputError("{}: {}: expected the table [{}], found {}", where, name, name, found_text(node));
    }
    if (!schema_.has_table(table) && (node.is_table() || name.find('.') != std::string::npos)) {
      std::vector<std::string> tables;
      for (const Table& known : schema_.tables_) {
        if (!known.name.empty()) tables.push_back(known.name);
      }
      throw InputError("{}: unknown table '{}'{} (the tables are {})", where, table, did_you_mean(table, tables),
                       join(tables));
    }
    throw InputError("{}: unknown key '{}'{} ({} lists all keys)", where, name, hint(name), schema_.listed_by_);
  }

  // The nearest key of the same table, else a key of the same name in another table, else the nearest of all.
  std::string hint(const std::string& name) const {
    const std::string leaf = name.substr(name.find('.') + 1);
    std::vector<std::string> siblings, namesakes;
    for (const Key& key : schema_.keys_) {
      if (key.table() + "." + leaf == name) siblings.push_back(key.leaf());
      if (key.leaf() == leaf) namesakes.push_back(key.name);
    }
    if (!namesakes.empty()) return fmt::format("; did you mean '{}'?", namesakes.front());
    const auto sibling = nearest(leaf, siblings);
    if (sibling) return fmt::format("; did you mean '{}.{}'?", name.substr(0, name.find('.')), *sibling);
    return did_you_mean(name, schema_.names());
  }

  Schema& schema_;
  std::string file_name_;
  std::vector<Leaf> leaves_;
};

void Schema::read_file(const std::string& path) { read_text(read_text_file(path, "a TOML file"), path); }

void Schema::read_text(const std::string& text, const std::string& file_name) {
  Reader(*this, file_name).read(parse_toml(text, file_name));
}

void Schema::set(const std::string& name, const std::string& value) {
  const Key* key = find(name);
  const bool wants_text = key != nullptr && (key->type == Key::Type::string || key->type == Key::Type::choice);
  const bool is_quoted = !value.empty() && (value.front() == '"' || value.front() == '\'');
  toml::table parsed;
  // A bare word is a string; so is any text for a key that holds one, such as a path with a '#'.
  if (!wants_text || is_quoted) {
    try {
      parsed = parse_toml("value = " + value + "\n", "--set");
    } catch (const InputError&) {
    }
  }
  if (parsed.size() != 1 || !parsed.contains("value")) {
    parsed = toml::table();
    parsed.insert("value", value);
  }
  Reader(*this, "--set").take(name, *parsed.get("value"), "--set");
}

void Schema::set(const std::string& assignment) {
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw InputError("--set: expected KEY=VALUE, such as optimizer.lr=3e-4, found '{}'", assignment);
  }
  const auto trimmed = [](const std::string& text) {
    const size_t begin = text.find_first_not_of(" \t");
    return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
  };
  set(trimmed(assignment.substr(0, equals)), trimmed(assignment.substr(equals + 1)));
}

}  // namespace ridgeline
