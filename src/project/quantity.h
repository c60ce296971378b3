// Quantities as people write them on a command line: "1T" tokens, "60d", "1.5h".
#pragma once

#include <string>

namespace ridgeline::project {

// A positive number with an optional suffix k, M, B or G, T, P (powers of a thousand). Throws InputError, naming
// `what`.
double parse_count(const std::string& text, const std::string& what);

// Seconds: a positive number with s, m or min, h, d, w or y (365.25 days). Throws InputError, naming `what`.
double parse_seconds(const std::string& text, const std::string& what);

}  // namespace ridgeline::project
