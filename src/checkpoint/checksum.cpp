#include "checkpoint/checksum.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <charconv>
#include <new>

namespace ridgeline::checkpoint {

Checksum::Checksum() : state_(XXH3_createState()) {
  if (!state_) throw std::bad_alloc();
  XXH3_64bits_reset(state_.get());
}

void Checksum::Free::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

void Checksum::add(std::span<const std::byte> bytes) { XXH3_64bits_update(state_.get(), bytes.data(), bytes.size()); }

uint64_t Checksum::value() const { return XXH3_64bits_digest(state_.get()); }

uint64_t checksum_of(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::string checksum_text(uint64_t checksum) { return fmt::format("{:016x}", checksum); }

std::optional<uint64_t> parse_checksum(std::string_view text) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (text.size() != 16 || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace ridgeline::checkpoint
