#include "simulate/csv.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/error.h"
#include "core/text_file.h"

namespace ridgeline::simulate {
namespace {

constexpr size_t kLargestFile = size_t{64} << 20;

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// Splits text into records; a record knows the line on which it starts.
class Splitter {
 public:
  Splitter(const std::string& text, const std::string& file_name) : text_(text), file_name_(file_name) {}

  bool next(std::vector<std::string>& cells, size_t& line) {
    cells.clear();
    if (at_ >= text_.size()) return false;
    line = line_;
    while (true) {
      cells.push_back(cell());
      const char end = at_ < text_.size() ? text_[at_++] : '\n';
      if (end == '\n') {
        ++line_;
        return true;
      }
    }
  }

 private:
  std::string cell() {
    if (at_ < text_.size() && text_[at_] == '"') return quoted();
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\n') ++at_;
    return trimmed(text_.substr(begin, at_ - begin));
  }

  std::string quoted() {
    const size_t start = line_;
    std::string value;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\n') ++line_;
      if (text_[at_] != '"') {
        value += text_[at_];
        continue;
      }
      if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
        value += text_[at_++];
        continue;
      }
      for (++at_; at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\n';) ++at_;
      return trimmed(value);
    }
    throw InputError("{}:{}: a quoted cell does not end; close it with \"", file_name_, start);
  }

  const std::string& text_;
  const std::string& file_name_;
  size_t at_ = 0;
  size_t line_ = 1;
};

}  // namespace

bool Table::has(const std::string& column) const {
  return std::find(columns_.begin(), columns_.end(), column) != columns_.end();
}

std::string Table::text(size_t row, const std::string& column) const {
  const auto found = std::find(columns_.begin(), columns_.end(), column);
  return found == columns_.end() ? "" : cells_[row][found - columns_.begin()];
}

std::optional<double> Table::number(size_t row, const std::string& column) const {
  const std::string cell = text(row, column);
  if (cell.empty()) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(cell.c_str(), &end);
  if (*end != '\0' || !std::isfinite(value)) {
    throw InputError("{}: column '{}' = '{}': expected a number or nothing", where(row), column, cell.substr(0, 60));
  }
  return value;
}

std::optional<int64_t> Table::count(size_t row, const std::string& column) const {
  const std::optional<double> value = number(row, column);
  if (!value) return std::nullopt;
  if (*value < 1 || *value > 1e12 || *value != std::floor(*value)) {
    throw InputError("{}: column '{}' = {}: expected a whole number from 1", where(row), column, *value);
  }
  return static_cast<int64_t>(*value);
}

std::string Table::where(size_t row) const { return fmt::format("{}:{}", file_name_, lines_[row]); }

Table parse_table(const std::string& text, const std::string& file_name) {
  Table table;
  table.file_name_ = file_name;
  Splitter splitter(text, table.file_name_);
  std::vector<std::string> cells;
  size_t line = 0;
  if (!splitter.next(table.columns_, line) || table.columns_.size() < 2) {
    throw InputError("{}: expected a header line of column names, separated by commas", file_name);
  }
  while (splitter.next(cells, line)) {
    if (cells.size() == 1 && cells[0].empty()) continue;  // a blank line
    if (cells.size() != table.columns_.size()) {
      throw InputError("{}:{}: {} cells, but the header names {} columns", file_name, line, cells.size(),
                       table.columns_.size());
    }
    table.cells_.push_back(cells);
    table.lines_.push_back(line);
  }
  return table;
}

Table read_table(const std::string& path) {
  return parse_table(read_text_file(path, "a table of runs (CSV)", kLargestFile), path);
}

}  // namespace ridgeline::simulate
