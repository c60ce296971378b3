// Checksum: XXH3, 64 bits, over bytes that come in parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

struct XXH3_state_s;

namespace ridgeline::checkpoint {

class Checksum {
 public:
  Checksum();
  void add(std::span<const std::byte> bytes);
  uint64_t value() const;

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

uint64_t checksum_of(std::span<const std::byte> bytes);

// As files and messages spell it: 16 lower-case hexadecimal digits.
std::string checksum_text(uint64_t checksum);
std::optional<uint64_t> parse_checksum(std::string_view text);

}  // namespace ridgeline::checkpoint
