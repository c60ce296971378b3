// What happens when a mapped file is cut short, or its disk fails, while it is read: the kernel raises SIGBUS. Watched
// mappings then end the process with exit code 1 and a message that names the file, instead of a bare signal. Faults
// outside of them go where they went before. Private to core/mapped_file.cpp.
#pragma once

#include <cstddef>
#include <string>

namespace ridgeline {

void watch_mapping(const std::string& path, const void* begin, size_t size);
// Does nothing for what is not watched.
void forget_mapping(const void* begin);

}  // namespace ridgeline
