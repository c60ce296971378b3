// write(2) until all is written, with what went wrong as a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ridgeline::data {

struct WriteOutcome {
  int64_t written = 0;
  int error = 0;  // errno of the write that failed, 0 where all is written
};

WriteOutcome write_all(int descriptor, std::span<const std::byte> bytes);

}  // namespace ridgeline::data
