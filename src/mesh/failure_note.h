// FailureNote: why a job ends, as the first rank that knew wrote it into the store for all others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ridgeline::mesh {

struct FailureNote {
  int64_t rank = 0;  // that failed
  int exit_code = 1;
  std::string message;
  bool by_itself = true;  // the failed rank wrote it; else another one did, and the failed rank reads nothing any more
  std::string host = {};  // of the failed rank; empty where unknown

  std::string to_text() const;
  // None where the text is no note.
  static std::optional<FailureNote> from_text(const std::string& text);
  // "ridgeline: rank 3 failed: ... [host nid001]" with a line end.
  std::string line() const;
};

// Writes to stderr in one piece, past buffers and locks that a stuck main thread may hold.
void print_line(const std::string& line);

}  // namespace ridgeline::mesh
