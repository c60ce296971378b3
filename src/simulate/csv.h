// Tables of recorded runs: comma-separated values (RFC 4180: quoted cells may hold commas, quotes doubled, line ends).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ridgeline::simulate {

class Table {
 public:
  const std::string& file_name() const { return file_name_; }
  const std::vector<std::string>& columns() const { return columns_; }
  size_t rows() const { return cells_.size(); }
  bool has(const std::string& column) const;
  // The cell's text without surrounding blanks; empty where the column is missing.
  std::string text(size_t row, const std::string& column) const;
  // Nothing for an empty cell. Throws InputError (file, line, column, text) for what is no number.
  std::optional<double> number(size_t row, const std::string& column) const;
  // The same, for what must be a whole number from 1 to 1e12.
  std::optional<int64_t> count(size_t row, const std::string& column) const;
  std::string where(size_t row) const;  // "runs.csv:12"

 private:
  friend Table parse_table(const std::string& text, const std::string& file_name);
  std::string file_name_;
  std::vector<std::string> columns_;
  std::vector<std::vector<std::string>> cells_;
  std::vector<size_t> lines_;
};

// Throws InputError where the file cannot be read (64 MiB at most), has no header or a row of another length.
Table read_table(const std::string& path);
Table parse_table(const std::string& text, const std::string& file_name);

}  // namespace ridgeline::simulate
