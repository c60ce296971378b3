#include "cli/wrapped_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace ridgeline::cli {
namespace {

constexpr size_t kColumns = 80;

}  // namespace

size_t text_width(const std::string& text) {
  size_t count = 0;
  for (const char character : text) count += (static_cast<unsigned char>(character) & 0xC0) != 0x80 ? 1 : 0;
  return count;
}

void print_wrapped(const std::string& text, size_t column, size_t cursor) {
  std::string line(column > cursor ? column - cursor : 0, ' ');
  size_t used = std::max(column, cursor);
  bool starts = true;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (!starts && used + 1 + text_width(word) > kColumns) {
      fmt::print("{}\n", line);
      line = std::string(column, ' ');
      used = column;
      starts = true;
    }
    line += (starts ? "" : " ") + word;
    used += (starts ? 0 : 1) + text_width(word);
    starts = false;
    begin = end + 1;
  }
  fmt::print("{}\n", line);
}

}  // namespace ridgeline::cli
