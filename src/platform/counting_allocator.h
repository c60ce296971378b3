// A counting allocator for CPU tensors: stands before torch's own and counts the bytes asked for, exactly, now and at
// the most. Each block carries its size in a 64-byte line in front of the data, so alignment stays what torch promises.
#pragma once

#include <cstdint>

namespace ridgeline::platform {

// Puts it in place, once; blocks that were given out before are not counted, then or when they are freed.
void install_counting_allocator();

int64_t counted_bytes();
int64_t counted_peak_bytes();
// The peak becomes what is allocated now.
void reset_counted_peak();

}  // namespace ridgeline::platform
