// Writing side of core/schema.h: complete TOML files and the reference page.
#include <fmt/format.h>

#include "core/schema.h"
#include "core/schema_key.h"

namespace ridgeline {

std::string Schema::to_toml(bool with_docs) const {
  std::string text;
  for (const Table& table : tables_) {
    if (!text.empty()) text += "\n";
    if (with_docs) text += fmt::format("# {}\n", table.doc);
    if (!table.name.empty()) text += fmt::format("[{}]\n", table.name);
    for (const Key& key : keys_) {
      if (key.table() != table.name) continue;
      const std::string value = Key::to_toml(key.get());
      if (with_docs) text += fmt::format("\n# {} ({})\n", key.doc, key.expected());
      const char* comment = with_docs && value == key.default_text ? "# " : "";
      text += fmt::format("{}{} = {}\n", comment, key.leaf(), value);
    }
  }
  return text;
}

namespace {

// A bar would end the table cell.
std::string cell(const std::string& text) {
  std::string result;
  for (const char character : text) {
    if (character == '|') result += '\\';
    result += character;
  }
  return result;
}

}  // namespace

std::string Schema::markdown() const {
  std::string text;
  for (const Table& table : tables_) {
    if (!text.empty()) text += "\n";
    const std::string heading = table.name.empty() ? "Before all tables" : "[" + table.name + "]";
    text += fmt::format("## {}\n\n{}.\n\n| key | value | default | meaning |\n| --- | --- | --- | --- |\n",
                        heading, table.doc);
    for (const Key& key : keys_) {
      if (key.table() != table.name) continue;
      text += fmt::format("| `{}` | {} | `{}` | {} |\n", key.name, cell(key.expected()), cell(key.default_text),
                          cell(key.doc));
    }
  }
  return text;
}

}  // namespace ridgeline
