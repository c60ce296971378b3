// A counting allocator for CPU tensors: stands before torch's own and counts the bytes asked for, exactly, now and at
// the most. Each block carries its size in a 64-byte line in front of the data, so alignment stays what torch promises.
#pragma once

#include <cstdint>

namespace ridgeline::platform {

// Puts it in place, once; blocks that were given out before are not counted, then or when they are freed.
void install_counting_allocator();

int64_t counted_bytes();
// Whose the blocks are that the calling thread asks for from now on, 0 to 63 and 0 at first, whoever frees them: so
// ranks that are threads of one process can be told apart.
void count_allocations_for(int owner);
int64_t counted_bytes(int owner);
int64_t counted_peak_bytes();
// The peak becomes what is allocated now.
void reset_counted_peak();

}  // namespace ridgeline::platform
