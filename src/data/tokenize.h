// Text files into a token file: bytes as tokens.
//
// The vocabulary is 257: each byte is the token of its value, and 256 ends every document. It needs no trained
// tokenizer, loses nothing, and takes text of any language or encoding.
//
//   TokenizeOptions options;
//   options.inputs = {"book.txt", "dictionary.dict.dz"};
//   options.output = "corpus";                             // corpus.bin and corpus.idx
//   options.documents = DocumentSplit::paragraph;
//   TokenizeResult result = tokenize_bytes(options);
//
// Inputs are read in order as streams; gzip and dictzip are unpacked (text_reader.h). The output appears when all of it
// is on the disk, or not at all (token_writer.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/token_file.h"

namespace ridgeline::data {

inline constexpr int64_t kByteVocabulary = 257;
inline constexpr int64_t kEndOfDocument = 256;

enum class DocumentSplit {
  file,       // a document each file, byte for byte
  paragraph,  // a document each block between blank lines
  line,       // a document each line that is not blank
};
// With `paragraph` and `line`, blanks (space, tab, CR, LF) at the end of a document are dropped and all else is kept.

struct TokenizeProgress {
  std::string input;       // file being read
  int64_t read_bytes = 0;  // of all inputs, as they lie on the disk
  int64_t total_bytes = 0;
  int64_t tokens = 0;
};

struct TokenizeOptions {
  std::vector<std::string> inputs;
  std::string output;  // prefix of .bin and .idx
  DocumentSplit documents = DocumentSplit::file;
  bool overwrite = false;                                 // without it, an existing output is an InputError
  std::function<void(const TokenizeProgress&)> progress;  // called about twice a second, from the second second on
};

struct TokenizeResult {
  int64_t documents = 0;
  int64_t tokens = 0;      // with the ends of documents
  int64_t text_bytes = 0;  // unpacked
  TokenType type = TokenType::uint16;
  int64_t vocabulary = kByteVocabulary;
};

// Throws InputError where no input holds any text.
TokenizeResult tokenize_bytes(const TokenizeOptions& options);

}  // namespace ridgeline::data
