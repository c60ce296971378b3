// Token files: Megatron-LM's indexed dataset, PREFIX.idx and PREFIX.bin (the layout is described in
// docs/token-files.md).
//
//   TokenFile file("corpus");                   // maps and checks both files
//   std::vector<int64_t> window(1025);
//   file.read(4096, window);                    // tokens 4096..5120 of all documents laid end to end
//
// Opening checks every size, offset and count of the index against both files before anything is used, in one pass over
// the index, and throws InputError that names the file, the byte, what stands there and what was expected. Token ids
// are not looked at on opening: check_vocabulary does that. A TokenFile is immutable: any number of threads may read.
// TokenWriter (token_writer.h) writes the pair.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/mapped_file.h"
#include "spec/placement.h"

namespace ridgeline::data {

// The codes stand in files: do not change them. 6 and 7 are floating point and no tokens.
enum class TokenType : uint8_t { uint8 = 1, int8 = 2, int16 = 3, int32 = 4, int64 = 5, uint16 = 8 };
std::string to_string(TokenType type);
int64_t token_bytes(TokenType type);
int64_t largest_token(TokenType type);

// What a writer should use for ids below `vocabulary`: uint16 below 65,500 as Megatron-LM does, else int32.
TokenType token_type_for(int64_t vocabulary);

class TokenFile {
 public:
  explicit TokenFile(const std::string& prefix);

  const std::string& prefix() const { return prefix_; }
  TokenType type() const { return type_; }
  int64_t tokens() const { return tokens_; }
  int64_t sequences() const { return sequences_; }  // a document is one sequence or more
  int64_t documents() const { return documents_; }

  // Fills `out` with the tokens from global index `begin` on. Reading past the end is an InternalError.
  void read(int64_t begin, std::span<int64_t> out) const;

  spec::Range document(int64_t index) const;  // its global token range
  int64_t document_of(int64_t token) const;   // the document that holds the global token index

  // Throws InputError, naming document and position, at the first id of `range` that is not in [0, vocabulary).
  void check_vocabulary(int64_t vocabulary, spec::Range range) const;
  void check_vocabulary(int64_t vocabulary) const { check_vocabulary(vocabulary, {0, tokens_}); }

 private:
  void check_header();
  void check_sequences();
  void check_documents() const;
  void check_modes() const;

  int32_t sequence_length(int64_t sequence) const;
  int64_t sequence_pointer(int64_t sequence) const;
  int64_t first_sequence(int64_t document) const;
  int64_t first_token(int64_t sequence) const;  // of `sequence`, which may be sequences()

  std::string prefix_;
  MappedFile index_;
  MappedFile bin_;
  TokenType type_ = TokenType::uint16;
  int64_t sequences_ = 0;
  int64_t documents_ = 0;
  int64_t tokens_ = 0;
  int64_t pointers_at_ = 0;  // byte offsets in the index file
  int64_t documents_at_ = 0;
  int64_t modes_at_ = 0;
};

}  // namespace ridgeline::data
