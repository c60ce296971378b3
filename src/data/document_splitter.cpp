#include "data/document_splitter.h"

#include <algorithm>

#include "core/error.h"

namespace ridgeline::data {
namespace {

// Blanks must be held until it is known whether text follows. No real text has so many in a row; a compressed file of
// nothing else could fill the memory.
constexpr size_t kMostBlanks = size_t{16} << 20;
constexpr std::string_view kBlanks = " \t\r";

}  // namespace

void DocumentSplitter::add(const std::string& path, std::string_view text) {
  if (split_ == DocumentSplit::file) {
    emit(text);
    return;
  }
  while (!text.empty()) {
    if (text.front() == '\n') {
      end_line();
      text.remove_prefix(1);
      continue;
    }
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size());
    const auto words = line.find_last_not_of(kBlanks) + 1;  // 0 where the line is blank
    if (words > 0) {
      emit(blanks_);
      emit(line.substr(0, words));
      blanks_.clear();
      line_is_blank_ = false;
    }
    blanks_ += line.substr(words);
    if (blanks_.size() > kMostBlanks) {
      throw InputError("{}: more than {} blanks in a row; expected text", path, kMostBlanks);
    }
  }
}

void DocumentSplitter::end_line() {
  if (line_is_blank_ || split_ == DocumentSplit::line) {
    end_document();
  } else {
    blanks_ += '\n';
  }
  line_is_blank_ = true;
}

void DocumentSplitter::end_file() {
  end_document();
  line_is_blank_ = true;
}

void DocumentSplitter::end_document() {
  blanks_.clear();
  if (!in_document_) return;
  constexpr int64_t end = kEndOfDocument;
  writer_.add({&end, 1});
  writer_.end_document();
  in_document_ = false;
}

void DocumentSplitter::emit(std::string_view text) {
  if (text.empty()) return;
  tokens_.resize(text.size());
  std::transform(text.begin(), text.end(), tokens_.begin(), [](char byte) { return static_cast<unsigned char>(byte); });
  writer_.add(tokens_);
  in_document_ = true;
}

}  // namespace ridgeline::data
