// Text broken at blanks, for output that is read in 80 columns.
#pragma once

#include <cstddef>
#include <string>

namespace ridgeline::cli {

// Characters of UTF-8 text.
size_t text_width(const std::string& text);

// Prints `text` and a line end in the columns from `column` on; the cursor stands at `cursor`.
void print_wrapped(const std::string& text, size_t column, size_t cursor);

}  // namespace ridgeline::cli
