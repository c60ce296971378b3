// The bytes of an .idx file that its reader and its writer share (docs/token-files.md).
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace ridgeline::data {

// Files are little-endian and are read and written as the machine's own numbers.
static_assert(std::endian::native == std::endian::little, "token files need a little-endian machine");

inline constexpr std::array<char, 9> kIndexMagic = {'M', 'M', 'I', 'D', 'I', 'D', 'X', '\0', '\0'};
inline constexpr uint64_t kIndexVersion = 1;

// Byte offsets in the header.
inline constexpr int64_t kVersionAt = 9;
inline constexpr int64_t kTypeAt = 17;
inline constexpr int64_t kSequenceCountAt = 18;
inline constexpr int64_t kDocumentCountAt = 26;
inline constexpr int64_t kLengthsAt = 34;

}  // namespace ridgeline::data
