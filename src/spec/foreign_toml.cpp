#include <algorithm>
#include <sstream>

#include "core/error.h"
#include "core/toml_text.h"
#include "spec/foreign_text.h"

namespace ridgeline::spec {
namespace {

class Flattener {
 public:
  explicit Flattener(const std::string& file) : file_(file) {}

  void table(const toml::table& table, const std::string& prefix, int depth) {
    if (depth > kDeepestForeignNesting) {
      throw InputError("{}:{}: tables nest deeper than {} levels", file_, table.source().begin.line,
                       kDeepestForeignNesting);
    }
    for (const auto& [key, node] : table) {
      const std::string name = prefix + std::string(key.str());
      if (node.is_table()) {
        this->table(*node.as_table(), name + ".", depth + 1);
      } else {
        leaf(name, node, key.source().begin.line);
      }
    }
  }

  std::vector<Setting> take() {
    std::stable_sort(lines_.begin(), lines_.end(), [](const Line& a, const Line& b) { return a.number < b.number; });
    std::vector<Setting> settings;
    for (Line& line : lines_) settings.push_back(std::move(line.setting));
    return settings;
  }

 private:
  struct Line {
    size_t number;
    Setting setting;
  };

  void leaf(const std::string& name, const toml::node& node, size_t line) {
    Setting setting{.name = name, .text = {}, .where = fmt::format("{}:{}", file_, line)};
    if (node.is_string()) {
      setting.text = node.as_string()->get();
    } else if (node.is_integer()) {
      setting.type = Setting::Type::integer;
      setting.text = fmt::format("{}", node.as_integer()->get());
    } else if (node.is_floating_point()) {
      setting.type = Setting::Type::number;
      setting.text = fmt::format("{}", node.as_floating_point()->get());
    } else if (node.is_boolean()) {
      setting.type = Setting::Type::boolean;
      setting.text = node.as_boolean()->get() ? "true" : "false";
    } else {  // lists, dates and times
      setting.type = Setting::Type::list;
      std::ostringstream text;
      if (const toml::array* list = node.as_array()) text << *list;
      setting.text = text.str();
    }
    lines_.push_back({line, std::move(setting)});
  }

  const std::string& file_;
  std::vector<Line> lines_;
};

}  // namespace

std::vector<Setting> settings_of_toml(std::string_view text, const std::string& file) {
  const toml::table root = parse_toml(text, file);
  Flattener flattener(file);
  flattener.table(root, "", 1);
  return flattener.take();
}

}  // namespace ridgeline::spec
