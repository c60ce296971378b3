// Writing to descriptors, with what went wrong as a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ridgeline {

struct WriteOutcome {
  int64_t written = 0;
  int error = 0;  // errno of the write that failed, 0 where all is written
};

// write(2) until all is written.
WriteOutcome write_all(int descriptor, std::span<const std::byte> bytes);

// A rename is on the disk only when its folder is. Returns the errno of what failed, 0 where it is done or nothing more
// can be done: some file systems cannot synchronise a folder, and one that may be searched but not read cannot be
// opened.
int synchronise_folder(const std::string& folder);

}  // namespace ridgeline
