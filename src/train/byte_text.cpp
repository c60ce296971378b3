#include "train/byte_text.h"

#include <algorithm>

#include "data/tokenize.h"

namespace ridgeline::train {
namespace {

constexpr const char* kReplacement = "\xEF\xBF\xBD";  // U+FFFD

unsigned char byte_at(std::string_view text, size_t index) { return static_cast<unsigned char>(text[index]); }

// Bytes of the character that begins with `first`; 0 where none does (Unicode 15, table 3-7).
size_t character_bytes(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return 2;
  if (first >= 0xE0 && first <= 0xEF) return 3;
  if (first >= 0xF0 && first <= 0xF4) return 4;
  return 0;
}

// Whether byte `index` of a character may follow its first byte: overlong forms, surrogates and what lies past U+10FFFF
// are refused by the second byte.
bool continues(unsigned char first, size_t index, unsigned char byte) {
  unsigned char low = 0x80, high = 0xBF;
  if (index == 1) {
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
  }
  return byte >= low && byte <= high;
}

// C0 but for tab and newline, DEL, and C1 (U+0080 to U+009F).
bool is_control(std::string_view character) {
  const unsigned char first = byte_at(character, 0);
  if (character.size() == 1) return (first < 0x20 && first != '\t' && first != '\n') || first == 0x7F;
  return first == 0xC2 && byte_at(character, 1) < 0xA0;
}

}  // namespace

std::string ByteText::take(bool at_end) {
  std::string shown;
  while (!pending_.empty()) {
    const unsigned char first = byte_at(pending_, 0);
    const size_t whole = character_bytes(first);
    size_t good = std::min<size_t>(1, whole);
    while (good > 0 && good < std::min(whole, pending_.size()) && continues(first, good, byte_at(pending_, good))) ++good;
    if (good > 0 && good == pending_.size() && good < whole && !at_end) break;  // the rest may still come
    const bool valid = whole > 0 && good == whole && !is_control(pending_.substr(0, whole));
    shown += valid ? pending_.substr(0, whole) : kReplacement;
    pending_.erase(0, std::max<size_t>(1, good));
  }
  return shown;
}

std::string ByteText::add(int64_t token) {
  if (token == data::kEndOfDocument) return finish() + "\n\n";
  pending_ += static_cast<char>(token);
  return take(/*at_end=*/false);
}

std::string ByteText::finish() { return take(/*at_end=*/true); }

std::string text_of(std::span<const int64_t> tokens) {
  ByteText text;
  std::string all;
  for (const int64_t token : tokens) all += text.add(token);
  return all + text.finish();
}

std::vector<int64_t> tokens_of(std::string_view text) {
  std::vector<int64_t> tokens(text.size());
  std::transform(text.begin(), text.end(), tokens.begin(), [](char c) { return static_cast<unsigned char>(c); });
  return tokens;
}

}  // namespace ridgeline::train
