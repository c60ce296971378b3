// Words and numbers for people: the nearest of a list of names, and quantities with a unit that suits their size.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ridgeline {

// Smallest number of insertions, deletions, replacements and swaps of neighbours that turn one word into the other
// (optimal string alignment). Words longer than 256 characters are compared by their first 256.
size_t edit_distance(std::string_view left, std::string_view right);

// The candidate nearest to `word` (the first of equals), none where all differ in more than about a third of it.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates);

// "; did you mean 'x'?" or nothing: the tail of an error text about an unknown name.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

// "a, b, c"
std::string join(const std::vector<std::string>& words, std::string_view separator = ", ");

// Text of a file for a message: at most 60 bytes, none that would steer a terminal.
std::string shortened(const std::string& text);

// Binary units: "512 B", "1.50 KiB", "23.4 GiB". Negative amounts keep their sign.
std::string format_bytes(double bytes);

// Decimal suffixes: "950", "1.30 k", "124 M", "175 B", "1.01 T" with three significant digits.
std::string format_count(double count);

// "12.3 us", "4.56 ms", "7.89 s", "2 min 05 s", "3 h 07 min", "12 d 04 h"; "-" where it is not finite.
std::string format_duration(double seconds);

}  // namespace ridgeline
