#include "project/quantity.h"

#include <array>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace ridgeline::project {
namespace {

using Suffix = std::pair<std::string_view, double>;

// Nothing below zero, and nothing that cannot be counted with.
template <size_t n>
double parse(const std::string& text, const std::string& what, const std::array<Suffix, n>& suffixes,
             const char* expected) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  std::string_view suffix(rest, static_cast<size_t>(end - rest));
  while (suffix.starts_with(' ')) suffix.remove_prefix(1);
  if (error == std::errc()) {
    for (const auto& [name, factor] : suffixes) {
      if (suffix == name && number > 0 && std::isfinite(number * factor)) return number * factor;
    }
  }
  throw InputError("{} '{}': expected {}", what, shortened(text), expected);
}

}  // namespace

double parse_count(const std::string& text, const std::string& what) {
  constexpr std::array<Suffix, 7> suffixes = {Suffix{"", 1}, {"k", 1e3},  {"M", 1e6}, {"B", 1e9},
                                              {"G", 1e9},    {"T", 1e12}, {"P", 1e15}};
  return parse(text, what, suffixes, "a positive number, such as 300B or 1.5T (k, M, B, T)");
}

double parse_seconds(const std::string& text, const std::string& what) {
  constexpr std::array<Suffix, 7> suffixes = {Suffix{"s", 1}, {"m", 60},     {"min", 60},    {"h", 3600},
                                              {"d", 86400},   {"w", 604800}, {"y", 31557600}};
  return parse(text, what, suffixes, "a duration, such as 60d, 12h or 30min (s, min, h, d, w, y)");
}

}  // namespace ridgeline::project
