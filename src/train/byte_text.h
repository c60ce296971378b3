// Byte tokens as text for people: what can be shown of a stream of tokens, as soon as it can be.
//
// A character of several bytes appears when its last byte has come. Bytes that are no UTF-8, and control characters
// (which could command a terminal), become U+FFFD; tab and newline are kept. The end of a document becomes an empty
// line.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ridgeline::train {

class ByteText {
 public:
  // What the token adds to the text; empty while a character is not complete.
  std::string add(int64_t token);
  // What is left: U+FFFD for a character that was not completed.
  std::string finish();

 private:
  std::string take(bool at_end);

  std::string pending_;  // bytes not shown yet
};

// The whole of it at once.
std::string text_of(std::span<const int64_t> tokens);

// A token for each byte.
std::vector<int64_t> tokens_of(std::string_view text);

}  // namespace ridgeline::train
