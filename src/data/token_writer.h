// TokenWriter: writes a token file pair (token_file.h, docs/token-files.md) as a stream.
//
//   TokenWriter writer("corpus", token_type_for(257));
//   writer.add(tokens);            // any number of times
//   writer.end_document();
//   writer.finish();               // only now do corpus.bin and corpus.idx appear
//
// Both files are written under temporary names and synchronised before either appears. An existing pair stays as it is
// until finish(); a crash inside finish() leaves the old pair, no .idx (which readers refuse), or the new pair.
// Destroyed without finish(), it leaves nothing behind. Memory: 12 bytes a document.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/output_file.h"
#include "data/token_file.h"

namespace ridgeline::data {

class TokenWriter {
 public:
  TokenWriter(const std::string& prefix, TokenType type);

  // Appends to the current document. InputError where an id does not fit the type.
  void add(std::span<const int64_t> tokens);
  // Ends the current document, which may be empty.
  void end_document();
  // Throws InternalError where tokens follow the last end_document().
  void finish();

  int64_t tokens() const { return tokens_; }
  int64_t documents() const { return static_cast<int64_t>(documents_.size()) - 1; }

 private:
  std::string prefix_;
  TokenType type_;
  OutputFile bin_;
  std::vector<int32_t> lengths_;       // of sequences
  std::vector<int64_t> documents_{0};  // first sequence of each document, and the end of the last
  int64_t open_ = 0;                   // tokens of the current document
  int64_t tokens_ = 0;
};

}  // namespace ridgeline::data
