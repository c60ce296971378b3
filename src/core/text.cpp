#include "core/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace ridgeline {

size_t edit_distance(std::string_view left, std::string_view right) {
  left = left.substr(0, 256);
  right = right.substr(0, 256);
  std::vector<size_t> before_last(right.size() + 1), last(right.size() + 1), row(right.size() + 1);
  for (size_t j = 0; j <= right.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= left.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= right.size(); ++j) {
      const size_t replaced = last[j - 1] + (left[i - 1] == right[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[right.size()];
}

std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates) {
  const size_t tolerated = std::max<size_t>(1, (word.size() + 1) / 3);
  std::optional<std::string> best;
  size_t best_distance = tolerated + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const auto name = nearest(word, candidates);
  return name ? fmt::format("; did you mean '{}'?", *name) : "";
}

std::string join(const std::vector<std::string>& words, std::string_view separator) {
  std::string text;
  for (size_t index = 0; index < words.size(); ++index) {
    if (index > 0) text += separator;
    text += words[index];
  }
  return text;
}

namespace {

// Three significant digits without an exponent, for magnitudes from 1 to 1024.
std::string three_digits(double value) {
  const double magnitude = std::fabs(value);
  const int decimals = magnitude < 9.995 ? 2 : magnitude < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f}", value, decimals);
}

template <size_t count>
std::string with_suffix(double value, double base, const std::array<const char*, count>& suffixes) {
  if (!std::isfinite(value)) return "-";
  if (std::fabs(value) < base && value == std::floor(value)) return fmt::format("{:.0f}{}", value, suffixes[0]);
  size_t index = 0;
  // 0.5 is what three_digits would round up to the next unit.
  while (std::fabs(value) >= base - 0.5 && index + 1 < count) {
    value /= base;
    ++index;
  }
  return three_digits(value) + suffixes[index];
}

}  // namespace

std::string shortened(const std::string& text) {
  constexpr size_t kLongest = 60;
  std::string line;
  for (const char character : text)
    line += static_cast<unsigned char>(character) < 0x20 || character == 0x7f ? '?' : character;
  if (line.size() <= kLongest) return line;
  size_t end = kLongest - 3;
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0) == 0x80) --end;  // not within a character
  return line.substr(0, end) + "...";
}

std::string format_bytes(double bytes) {
  return with_suffix<6>(bytes, 1024.0, {" B", " KiB", " MiB", " GiB", " TiB", " PiB"});
}

std::string format_count(double count) { return with_suffix<6>(count, 1000.0, {"", " k", " M", " B", " T", " P"}); }

std::string format_duration(double seconds) {
  if (!std::isfinite(seconds)) return "-";
  if (seconds < 0) return fmt::format("-{}", format_duration(-seconds));
  if (seconds == 0) return "0 s";
  if (seconds < 999.5e-6) return three_digits(seconds * 1e6) + " us";
  if (seconds < 999.5e-3) return three_digits(seconds * 1e3) + " ms";
  if (seconds < 59.95) return three_digits(seconds) + " s";
  // A duration that no calendar holds is printed in days as it is.
  if (seconds > 1e15) return fmt::format("{:.3g} d", seconds / 86400);
  const int64_t whole = std::llround(seconds);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  if (whole < 86400) return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
  return fmt::format("{} d {:02} h", whole / 86400, whole % 86400 / 3600);
}

}  // namespace ridgeline
