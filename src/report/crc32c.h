// CRC-32C (Castagnoli; RFC 3720, appendix B.4), by table: event files need a few hundred bytes a step.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace ridgeline::report {

constexpr std::array<uint32_t, 256> make_crc32c_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t remainder = byte;
    for (int bit = 0; bit < 8; ++bit) remainder = (remainder >> 1) ^ (remainder & 1 ? 0x82f63b78u : 0u);
    table[byte] = remainder;
  }
  return table;
}

constexpr uint32_t crc32c(std::string_view bytes) {
  constexpr auto table = make_crc32c_table();
  uint32_t remainder = ~0u;
  for (const char byte : bytes)
    remainder = (remainder >> 8) ^ table[(remainder ^ static_cast<unsigned char>(byte)) & 255];
  return ~remainder;
}

}  // namespace ridgeline::report
