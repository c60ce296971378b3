#include "core/toml_text.h"

#include <cstring>

#include "core/error.h"

namespace ridgeline {
namespace {

// toml++ frees nested tables recursively, and version 3.3 does not bound the depth that a dotted key makes.
constexpr size_t kMostDots = 200;

void refuse_deep_keys(std::string_view text, const std::string& file_name) {
  size_t dots = 0;
  size_t line = 1;
  for (const char character : text) {
    if (character == '\n') ++line;
    if (character == '.') ++dots;
    if (std::strchr("\n=,[]{}#", character) != nullptr && character != '\0') dots = 0;
    if (dots > kMostDots) throw InputError("{}:{}: a name with more than {} dots", file_name, line, kMostDots);
  }
}

}  // namespace

toml::table parse_toml(std::string_view text, const std::string& file_name) {
  refuse_deep_keys(text, file_name);
  try {
    return toml::parse(text, file_name);
  } catch (const toml::parse_error& error) {
    throw InputError("{}:{}: not valid TOML: {}", file_name, error.source().begin.line,
                     std::string(error.description()));
  }
}

}  // namespace ridgeline
