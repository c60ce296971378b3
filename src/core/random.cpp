#include "core/random.h"

#include <cmath>
#include <vector>

#include "core/error.h"
#include "core/split_mix.h"

#define RIDGELINE_TARGET_FILE "core/random_loops.inl"
#include "core/for_each_target.h"

namespace ridgeline {
namespace {

uint64_t mix(uint64_t value) { return split_mix(value + kGoldenGamma); }

}  // namespace

PhiloxBlock philox4x32(PhiloxBlock counter, uint64_t key) {
  uint32_t key0 = static_cast<uint32_t>(key);
  uint32_t key1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53u} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key0, static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key1, static_cast<uint32_t>(product0)};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

uint64_t random_key(uint64_t seed, std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a, 64 bits
  for (const char character : name) hash = (hash ^ static_cast<unsigned char>(character)) * 0x100000001b3u;
  return mix(mix(seed) ^ hash);
}

void fill_normal(std::span<float> values, uint64_t key, uint64_t first_element, double std) {
  const auto loop = RIDGELINE_PICK(normal_loop);
  loop(values.data(), static_cast<int64_t>(values.size()), key, first_element, std);
}

void fill_normal_box(std::span<float> values, uint64_t key, std::span<const int64_t> shape,
                     std::span<const int64_t> offset, std::span<const int64_t> extent, double std) {
  RIDGELINE_ASSERT(shape.size() == offset.size() && shape.size() == extent.size());
  int64_t elements = 1;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    RIDGELINE_ASSERT(offset[dim] >= 0 && extent[dim] >= 0 && offset[dim] <= shape[dim] - extent[dim]);
    elements *= extent[dim];
  }
  RIDGELINE_ASSERT(elements == static_cast<int64_t>(values.size()));
  if (elements == 0) return;

  // Trailing dims that are whole, and the one before them, form contiguous runs of the stream.
  size_t run_dim = shape.size();
  int64_t run = 1;
  while (run_dim > 0) {
    run *= extent[--run_dim];
    if (extent[run_dim] != shape[run_dim]) break;
  }
  std::vector<int64_t> index(run_dim, 0);
  for (int64_t begin = 0; begin < elements; begin += run) {
    uint64_t first = 0;
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      const int64_t coordinate = offset[dim] + (dim < run_dim ? index[dim] : 0);
      first = first * static_cast<uint64_t>(shape[dim]) + static_cast<uint64_t>(coordinate);
    }
    fill_normal(values.subspan(static_cast<size_t>(begin), static_cast<size_t>(run)), key, first, std);
    for (size_t dim = run_dim; dim > 0 && ++index[dim - 1] == extent[dim - 1]; --dim) index[dim - 1] = 0;
  }
}

uint64_t dropout_key(uint64_t seed, int64_t step, int64_t site) {
  RIDGELINE_ASSERT(step >= 0 && step < (int64_t{1} << 40) && site >= 0 && site < (int64_t{1} << 24));
  return random_key(seed, "dropout") ^ (static_cast<uint64_t>(site) << 40 | static_cast<uint64_t>(step));
}

DropoutRate::DropoutRate(double probability) {
  RIDGELINE_ASSERT(probability >= 0.0 && probability < 1.0);
  threshold = static_cast<uint32_t>(std::min(std::lround(probability * 65536.0), 65535L));
  scale = static_cast<float>(1.0 / (1.0 - threshold / 65536.0));
}

bool dropout_keeps(const DropoutRate& rate, uint64_t key, int64_t sample, int64_t position, int64_t channel) {
  RIDGELINE_ASSERT(sample >= 0 && position >= 0 && position < (int64_t{1} << 32) && channel >= 0);
  const int64_t block = channel / 64 * 8 + channel % 8;
  const int64_t field = channel / 8 % 8;
  RIDGELINE_ASSERT(block < (int64_t{1} << 32));
  const PhiloxBlock random = philox4x32({static_cast<uint32_t>(block), static_cast<uint32_t>(position),
                                         static_cast<uint32_t>(sample), static_cast<uint32_t>(sample >> 32)},
                                        key);
  const uint32_t word = random[static_cast<size_t>(field / 2)];
  return (field % 2 == 0 ? word & 0xffffu : word >> 16) >= rate.threshold;
}

}  // namespace ridgeline
