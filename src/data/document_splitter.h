// DocumentSplitter: cuts a stream of text into documents of byte tokens and writes them (tokenize.h says by which
// rules).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/token_writer.h"
#include "data/tokenize.h"

namespace ridgeline::data {

class DocumentSplitter {
 public:
  DocumentSplitter(TokenWriter& writer, DocumentSplit split) : writer_(writer), split_(split) {}

  // The next piece of file `path`, of any size.
  void add(const std::string& path, std::string_view text);
  // The file ends, and with it its last document.
  void end_file();

 private:
  void end_line();
  void end_document();
  void emit(std::string_view text);

  TokenWriter& writer_;
  DocumentSplit split_;
  bool in_document_ = false;
  bool line_is_blank_ = true;    // so far
  std::string blanks_;           // seen, and kept only if text of the same document follows
  std::vector<int64_t> tokens_;  // scratch
};

}  // namespace ridgeline::data
