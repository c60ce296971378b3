#include "data/token_writer.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "core/error.h"
#include "data/token_format.h"

namespace ridgeline::data {
namespace {

template <typename To>
void write_as(OutputFile& file, std::span<const int64_t> tokens) {
  std::vector<To> converted(tokens.size());
  std::transform(tokens.begin(), tokens.end(), converted.begin(), [](int64_t token) { return static_cast<To>(token); });
  file.write_array(std::span<const To>(converted));
}

void write_tokens(OutputFile& file, TokenType type, std::span<const int64_t> tokens) {
  switch (type) {
    case TokenType::uint8:
      return write_as<uint8_t>(file, tokens);
    case TokenType::int8:
      return write_as<int8_t>(file, tokens);
    case TokenType::int16:
      return write_as<int16_t>(file, tokens);
    case TokenType::int32:
      return write_as<int32_t>(file, tokens);
    case TokenType::int64:
      return file.write_array(tokens);
    case TokenType::uint16:
      return write_as<uint16_t>(file, tokens);
  }
}

}  // namespace

TokenWriter::TokenWriter(const std::string& prefix, TokenType type)
    : prefix_(prefix), type_(type), bin_(prefix + ".bin") {}

void TokenWriter::add(std::span<const int64_t> tokens) {
  const auto largest = largest_token(type_);
  const auto bad =
      std::find_if(tokens.begin(), tokens.end(), [largest](int64_t token) { return token < 0 || token > largest; });
  if (bad != tokens.end()) {
    throw InputError("{}: token {} of document {} is {}; expected 0 to {}, the ids that {} holds", bin_.path(),
                     open_ + (bad - tokens.begin()), documents(), *bad, largest, to_string(type_));
  }
  write_tokens(bin_, type_, tokens);
  open_ += static_cast<int64_t>(tokens.size());
  tokens_ += static_cast<int64_t>(tokens.size());
}

void TokenWriter::end_document() {
  // Lengths are int32 in the file: a longer document becomes several sequences.
  constexpr int64_t kLongest = std::numeric_limits<int32_t>::max();
  do {
    const auto length = std::min(open_, kLongest);
    lengths_.push_back(static_cast<int32_t>(length));
    open_ -= length;
  } while (open_ > 0);
  documents_.push_back(static_cast<int64_t>(lengths_.size()));
}

void TokenWriter::finish() {
  RIDGELINE_ASSERT(open_ == 0);
  OutputFile index(prefix_ + ".idx");
  index.write_array(std::span<const char>(kIndexMagic));
  index.write_value(kIndexVersion);
  index.write_value(static_cast<uint8_t>(type_));
  index.write_value(static_cast<uint64_t>(lengths_.size()));
  index.write_value(static_cast<uint64_t>(documents_.size()));
  index.write_array(std::span<const int32_t>(lengths_));
  int64_t pointer = 0;
  for (const auto length : lengths_) {
    index.write_value(pointer);
    pointer += length * token_bytes(type_);
  }
  index.write_array(std::span<const int64_t>(documents_));
  index.close();
  bin_.close();
  // The old .idx goes first, so that it never stands beside the new .bin.
  if (::unlink(index.path().c_str()) != 0 && errno != ENOENT) {
    throw Failure("{}: cannot be replaced: {}", index.path(), std::strerror(errno));
  }
  bin_.publish();
  index.publish();
}

}  // namespace ridgeline::data
