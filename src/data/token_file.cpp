#include "data/token_file.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/error.h"
#include "data/token_format.h"

namespace ridgeline::data {
namespace {

// Numbers in an .idx lie at any alignment, since its header is 34 bytes.
template <typename T>
T load(std::span<const std::byte> bytes, int64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// Calls `visit` with a null pointer of the C++ type of `type`.
template <typename Visitor>
decltype(auto) visit_type(TokenType type, Visitor&& visit) {
  switch (type) {
    case TokenType::uint8:
      return visit(static_cast<const uint8_t*>(nullptr));
    case TokenType::int8:
      return visit(static_cast<const int8_t*>(nullptr));
    case TokenType::int16:
      return visit(static_cast<const int16_t*>(nullptr));
    case TokenType::int32:
      return visit(static_cast<const int32_t*>(nullptr));
    case TokenType::int64:
      return visit(static_cast<const int64_t*>(nullptr));
    case TokenType::uint16:
      return visit(static_cast<const uint16_t*>(nullptr));
  }
  throw InternalError("token type {}", static_cast<int>(type));
}

bool is_token_type(uint8_t code) { return (code >= 1 && code <= 5) || code == 8; }

}  // namespace

std::string to_string(TokenType type) {
  switch (type) {
    case TokenType::uint8:
      return "uint8";
    case TokenType::int8:
      return "int8";
    case TokenType::int16:
      return "int16";
    case TokenType::int32:
      return "int32";
    case TokenType::int64:
      return "int64";
    case TokenType::uint16:
      return "uint16";
  }
  throw InternalError("token type {}", static_cast<int>(type));
}

int64_t token_bytes(TokenType type) {
  return visit_type(type, [](const auto* null) { return static_cast<int64_t>(sizeof *null); });
}

int64_t largest_token(TokenType type) {
  return visit_type(type, []<typename T>(const T*) { return static_cast<int64_t>(std::numeric_limits<T>::max()); });
}

TokenType token_type_for(int64_t vocabulary) { return vocabulary < 65500 ? TokenType::uint16 : TokenType::int32; }

TokenFile::TokenFile(const std::string& prefix) : prefix_(prefix), index_(prefix + ".idx"), bin_(prefix + ".bin") {
  check_header();
  check_sequences();
  check_documents();
  check_modes();
}

void TokenFile::check_header() {
  const auto bytes = index_.bytes();
  const auto size = static_cast<int64_t>(bytes.size());
  const auto& path = index_.path();
  if (size < kLengthsAt) {
    throw InputError("{}: {} bytes; expected the {} bytes of an index header or more. Write the file again.", path,
                     size, kLengthsAt);
  }
  if (std::memcmp(bytes.data(), kIndexMagic.data(), kIndexMagic.size()) != 0) {
    throw InputError(
        "{}: byte 0: not the mark of an indexed dataset; expected 'MMIDIDX' and two zero bytes. Files of the older "
        "'TNTIDX' kind and other formats must be tokenised again.",
        path);
  }
  const auto version = load<uint64_t>(bytes, kVersionAt);
  if (version != kIndexVersion) {
    throw InputError("{}: byte {}: version {}; expected {}", path, kVersionAt, version, kIndexVersion);
  }
  const auto code = load<uint8_t>(bytes, kTypeAt);
  if (!is_token_type(code)) {
    throw InputError(
        "{}: byte {}: dtype code {}; expected 1 (uint8), 2 (int8), 3 (int16), 4 (int32), 5 (int64) or 8 (uint16)", path,
        kTypeAt, code);
  }
  type_ = static_cast<TokenType>(code);

  // Each sequence takes 12 bytes of the index and each document 8: dividing first keeps every product below its size.
  const auto sequences = load<uint64_t>(bytes, kSequenceCountAt);
  const auto room = static_cast<uint64_t>(size - kLengthsAt);
  if (sequences > room / 12) {
    throw InputError(
        "{}: byte {}: {} sequences need 12 bytes each, and the file has {} bytes; it is cut short or damaged", path,
        kSequenceCountAt, sequences, size);
  }
  const auto entries = load<uint64_t>(bytes, kDocumentCountAt);
  if (entries > (room - 12 * sequences) / 8) {
    throw InputError(
        "{}: byte {}: {} document entries after {} sequences need 8 bytes each, and the file has {} bytes; it is cut "
        "short or damaged",
        path, kDocumentCountAt, entries, sequences, size);
  }
  if (entries < 1) {
    throw InputError("{}: byte {}: 0 document entries; expected 1 or more (the first is always 0)", path,
                     kDocumentCountAt);
  }
  sequences_ = static_cast<int64_t>(sequences);
  documents_ = static_cast<int64_t>(entries) - 1;
  pointers_at_ = kLengthsAt + 4 * sequences_;
  documents_at_ = pointers_at_ + 8 * sequences_;
  modes_at_ = documents_at_ + 8 * (documents_ + 1);
}

void TokenFile::check_sequences() {
  const auto width = token_bytes(type_);
  const auto size = static_cast<int64_t>(bin_.bytes().size());
  int64_t expected = 0;  // invariant: 0 <= expected <= size, so nothing below overflows
  for (int64_t sequence = 0; sequence < sequences_; ++sequence) {
    const int64_t length = sequence_length(sequence);
    if (length < 0) {
      throw InputError("{}: byte {}: sequence {} has length {}; expected 0 or more", index_.path(),
                       kLengthsAt + 4 * sequence, sequence, length);
    }
    const auto pointer = sequence_pointer(sequence);
    if (pointer != expected) {
      throw InputError(
          "{}: byte {}: sequence {} starts at byte {} of {}; expected {}, where the one before it ends. Write the pair "
          "again.",
          index_.path(), pointers_at_ + 8 * sequence, sequence, pointer, bin_.path(), expected);
    }
    if (length * width > size - expected) {
      throw InputError(
          "{}: sequence {} takes bytes {} to {}, and the file has {}; it is cut short, or does not belong to {}",
          bin_.path(), sequence, expected, expected + length * width, size, index_.path());
    }
    expected += length * width;
  }
  if (expected != size) {
    throw InputError("{}: {} bytes; expected {} ({} tokens of {}), as {} says. The two files are not a pair.",
                     bin_.path(), size, expected, expected / width, to_string(type_), index_.path());
  }
  tokens_ = expected / width;
}

void TokenFile::check_documents() const {
  int64_t before = 0;
  for (int64_t entry = 0; entry <= documents_; ++entry) {
    const auto first = first_sequence(entry);
    const auto at = documents_at_ + 8 * entry;
    if (entry == 0 && first != 0) {
      throw InputError("{}: byte {}: the first document starts at sequence {}; expected 0", index_.path(), at, first);
    }
    if (first < before || first > sequences_) {
      throw InputError("{}: byte {}: document entry {} is sequence {}; expected {} to {}", index_.path(), at, entry,
                       first, before, sequences_);
    }
    before = first;
  }
  if (before != sequences_) {
    throw InputError("{}: byte {}: the last document ends at sequence {}; expected {}, the number of sequences",
                     index_.path(), documents_at_ + 8 * documents_, before, sequences_);
  }
}

// Multimodal files carry one mode byte a sequence after the documents; text is mode 0.
void TokenFile::check_modes() const {
  const auto bytes = index_.bytes();
  const auto rest = static_cast<int64_t>(bytes.size()) - modes_at_;
  if (rest == 0) return;
  if (rest != sequences_) {
    throw InputError("{}: byte {}: {} bytes follow the documents; expected none, or one mode for each of {} sequences",
                     index_.path(), modes_at_, rest, sequences_);
  }
  const auto modes = bytes.subspan(static_cast<size_t>(modes_at_));
  const auto odd = std::find_if(modes.begin(), modes.end(), [](std::byte mode) { return mode != std::byte{0}; });
  if (odd != modes.end()) {
    throw InputError("{}: byte {}: sequence {} has mode {}; expected 0: only text can be trained on", index_.path(),
                     modes_at_ + (odd - modes.begin()), odd - modes.begin(), std::to_integer<int>(*odd));
  }
}

int32_t TokenFile::sequence_length(int64_t sequence) const {
  return load<int32_t>(index_.bytes(), kLengthsAt + 4 * sequence);
}

int64_t TokenFile::sequence_pointer(int64_t sequence) const {
  return load<int64_t>(index_.bytes(), pointers_at_ + 8 * sequence);
}

int64_t TokenFile::first_sequence(int64_t document) const {
  return load<int64_t>(index_.bytes(), documents_at_ + 8 * document);
}

int64_t TokenFile::first_token(int64_t sequence) const {
  return sequence == sequences_ ? tokens_ : sequence_pointer(sequence) / token_bytes(type_);
}

void TokenFile::read(int64_t begin, std::span<int64_t> out) const {
  const auto count = static_cast<int64_t>(out.size());
  RIDGELINE_ASSERT(begin >= 0 && count <= tokens_ && begin <= tokens_ - count);
  visit_type(type_, [&]<typename T>(const T*) {
    // A .bin is mapped at a page and holds nothing but tokens: they are aligned.
    const auto* from = reinterpret_cast<const T*>(bin_.bytes().data()) + begin;
    std::copy(from, from + count, out.begin());
  });
}

spec::Range TokenFile::document(int64_t index) const {
  RIDGELINE_ASSERT(index >= 0 && index < documents_);
  return {first_token(first_sequence(index)), first_token(first_sequence(index + 1))};
}

int64_t TokenFile::document_of(int64_t token) const {
  RIDGELINE_ASSERT(token >= 0 && token < tokens_);
  int64_t low = 0;  // invariant: document `low` starts at or before `token`, document `high` after it
  int64_t high = documents_;
  while (high - low > 1) {
    const auto middle = low + (high - low) / 2;
    (document(middle).begin <= token ? low : high) = middle;
  }
  return low;
}

void TokenFile::check_vocabulary(int64_t vocabulary, spec::Range range) const {
  RIDGELINE_ASSERT(vocabulary > 0);
  RIDGELINE_ASSERT(range.begin >= 0 && range.begin <= range.end && range.end <= tokens_);
  visit_type(type_, [&]<typename T>(const T*) {
    const auto* all = reinterpret_cast<const T*>(bin_.bytes().data());
    const auto* end = all + range.end;
    const auto* bad = std::find_if(all + range.begin, end, [vocabulary](T token) {
      return static_cast<uint64_t>(static_cast<int64_t>(token)) >= static_cast<uint64_t>(vocabulary);
    });
    if (bad == end) return;
    const auto at = static_cast<int64_t>(bad - all);
    const auto document_index = document_of(at);
    throw InputError(
        "{}: byte {}: token {} of document {} is {}; expected 0 to {} (vocabulary = {}). Set model.vocabulary to what "
        "the "
        "corpus was tokenised with, or tokenise it again.",
        bin_.path(), at * token_bytes(type_), at - document(document_index).begin, document_index,
        static_cast<int64_t>(*bad), vocabulary - 1, vocabulary);
  });
}

}  // namespace ridgeline::data
