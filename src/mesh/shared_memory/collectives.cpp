#include "mesh/shared_memory/collectives.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/error.h"

namespace ridgeline::mesh::shared_memory {
namespace {

// Below, each rank reduces everything: waiting for another round costs more.
constexpr int64_t kSmallTotal = 64 << 10;

// Counts wrap; two that are compared never lie far apart.
bool reached(uint32_t count, uint32_t wanted) { return static_cast<int32_t>(count - wanted) >= 0; }

uint64_t awaited_word(uint32_t arrivals, int64_t from) {
  return (static_cast<uint64_t>(arrivals) << 32) | static_cast<uint64_t>(from + 2);
}

int64_t round_down(int64_t value, int64_t unit) { return value / unit * unit; }

// Calls `chunk(begin, count)` for consecutive pieces of at most `most`.
template <typename Chunk>
void in_chunks(int64_t total, int64_t most, Chunk chunk) {
  RIDGELINE_ASSERT(most > 0);
  for (int64_t begin = 0; begin < total; begin += most) chunk(begin, std::min(most, total - begin));
}

void copy_bytes(void* to, const void* from, int64_t bytes) {
  if (to != from && bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

}  // namespace

Collectives::Collectives(const Membership& membership)
    : membership_(membership),
      rank_(membership.rank()),
      size_(membership.size()),
      slot_bytes_(membership.segment().shape().slot_bytes) {}

bool Collectives::arrived(uint32_t arrivals, int64_t from) const {
  if (from != kAll) return reached(membership_.seat(from).arrivals.load(), arrivals);
  for (int64_t rank = 0; rank < size_; ++rank) {
    if (rank != rank_ && !reached(membership_.seat(rank).arrivals.load(), arrivals)) return false;
  }
  return true;
}

void Collectives::signal() {
  membership_.seat().arrivals.store(++arrivals_);
  for (int64_t rank = 0; rank < size_; ++rank) {
    if (rank == rank_) continue;
    Seat& other = membership_.seat(rank);
    uint64_t word = other.awaited.load();
    if (word == 0) continue;
    const int64_t from = static_cast<int64_t>(word & 0xffffffff) - 2;
    const auto wanted = static_cast<uint32_t>(word >> 32);
    bool enough = false;
    if (from == kAll) {
      enough = true;
      for (int64_t peer = 0; peer < size_ && enough; ++peer) {
        enough = peer == rank || reached(membership_.seat(peer).arrivals.load(), wanted);
      }
    } else {
      enough = from == rank_ && reached(arrivals_, wanted);
    }
    // Of several that see it, one wakes.
    if (enough && other.awaited.compare_exchange_strong(word, 0)) ring(other.bell);
  }
}

void Collectives::await(int64_t from) { await_arrivals(arrivals_, from); }

void Collectives::await_arrivals(uint32_t arrivals, int64_t from) {
  if (from == rank_ || reached(seen_, arrivals)) return;
  if (!membership_.patience().outlast([&] { return arrived(arrivals, from); })) {
    Seat& seat = membership_.seat();
    Membership::Vigil vigil(membership_);
    while (true) {
      const uint32_t bell = seat.bell.load();
      seat.awaited.store(awaited_word(arrivals, from));
      if (arrived(arrivals, from)) break;
      const auto missing = [&](int64_t rank) { return !reached(membership_.seat(rank).arrivals.load(), arrivals); };
      std::vector<int64_t> ranks;
      for (int64_t rank = 0; rank < size_; ++rank) {
        if (rank != rank_ && (from == kAll || from == rank) && missing(rank)) ranks.push_back(rank);
      }
      vigil.check(ranks, missing);
      sleep_on(seat.bell, bell, membership_.nap_milliseconds());
    }
    seat.awaited.store(0);
  }
  if (from == kAll) seen_ = arrivals;
}

void Collectives::begin_chunk() {
  await_arrivals(chunk_arrivals_, kAll);
  chunk_arrivals_ = arrivals_ + 1;
  half_ ^= 1;
}

void Collectives::barrier() {
  begin_chunk();
  signal();
  await(kAll);
}

void Collectives::all_reduce(void* data, int64_t elements, Element element, Reduction reduction) {
  auto* bytes = static_cast<std::byte*>(data);
  const int64_t width = bytes_of(element);
  if (elements * width * size_ <= kSmallTotal) return all_reduce_small(bytes, elements, element, reduction);
  in_chunks(elements, slot_bytes_ / width, [&](int64_t begin, int64_t count) {
    all_reduce_chunk(bytes + begin * width, count, element, reduction);
  });
}

void Collectives::all_reduce_small(std::byte* data, int64_t elements, Element element, Reduction reduction) {
  begin_chunk();
  copy_bytes(slot(rank_), data, elements * bytes_of(element));
  signal();
  await(kAll);
  std::vector<const void*> sources(static_cast<std::size_t>(size_));
  for (int64_t rank = 0; rank < size_; ++rank) sources[static_cast<std::size_t>(rank)] = slot(rank);
  sources[static_cast<std::size_t>(rank_)] = data;
  reduce(data, sources.data(), size_, elements, element, reduction);
}

void Collectives::all_reduce_chunk(std::byte* data, int64_t elements, Element element, Reduction reduction) {
  const int64_t width = bytes_of(element);
  // Shares end at cache lines, so that no two ranks write into one.
  const int64_t unit = static_cast<int64_t>(kCacheLine) / width;
  const int64_t share = ((elements + size_ - 1) / size_ + unit - 1) / unit * unit;
  const auto begin_of = [&](int64_t rank) { return std::min(elements, share * rank) * width; };
  const int64_t own = begin_of(rank_);
  const int64_t own_end = begin_of(rank_ + 1);

  begin_chunk();
  copy_bytes(slot(rank_), data, own);
  copy_bytes(slot(rank_) + own_end, data + own_end, elements * width - own_end);
  signal();
  await(kAll);
  if (own_end > own) {
    std::vector<const void*> sources(static_cast<std::size_t>(size_));
    for (int64_t rank = 0; rank < size_; ++rank) sources[static_cast<std::size_t>(rank)] = slot(rank) + own;
    sources[static_cast<std::size_t>(rank_)] = data + own;
    reduce(slot(rank_) + own, sources.data(), size_, (own_end - own) / width, element, reduction);
  }
  signal();
  await(kAll);
  for (int64_t rank = 0; rank < size_; ++rank) {
    copy_bytes(data + begin_of(rank), slot(rank) + begin_of(rank), begin_of(rank + 1) - begin_of(rank));
  }
}

void Collectives::all_gather(void* out, const void* in, int64_t bytes_of_part) {
  auto* to = static_cast<std::byte*>(out);
  const auto* from = static_cast<const std::byte*>(in);
  in_chunks(bytes_of_part, slot_bytes_, [&](int64_t begin, int64_t bytes) {
    begin_chunk();
    copy_bytes(slot(rank_), from + begin, bytes);
    signal();
    copy_bytes(to + rank_ * bytes_of_part + begin, from + begin, bytes);
    await(kAll);
    for (int64_t rank = 0; rank < size_; ++rank) {
      if (rank != rank_) copy_bytes(to + rank * bytes_of_part + begin, slot(rank), bytes);
    }
  });
}

void Collectives::reduce_scatter(void* out, const void* in, int64_t elements_of_part, Element element) {
  auto* to = static_cast<std::byte*>(out);
  const auto* from = static_cast<const std::byte*>(in);
  const int64_t width = bytes_of(element);
  const int64_t piece = round_down(slot_bytes_ / size_, static_cast<int64_t>(kCacheLine));
  std::vector<const void*> sources(static_cast<std::size_t>(size_));
  in_chunks(elements_of_part, piece / width, [&](int64_t begin, int64_t count) {
    const auto own = [&](int64_t part) { return from + (part * elements_of_part + begin) * width; };
    begin_chunk();
    for (int64_t part = 0; part < size_; ++part) {
      if (part != rank_) copy_bytes(slot(rank_) + part * piece, own(part), count * width);
    }
    signal();
    await(kAll);
    for (int64_t rank = 0; rank < size_; ++rank) sources[static_cast<std::size_t>(rank)] = slot(rank) + rank_ * piece;
    sources[static_cast<std::size_t>(rank_)] = own(rank_);
    reduce(to + begin * width, sources.data(), size_, count, element, Reduction::sum);
  });
}

void Collectives::broadcast(void* data, int64_t bytes, int64_t root) {
  auto* to = static_cast<std::byte*>(data);
  in_chunks(bytes, slot_bytes_, [&](int64_t begin, int64_t count) {
    begin_chunk();
    if (rank_ == root) copy_bytes(slot(rank_), to + begin, count);
    signal();
    await(root);
    if (rank_ != root) copy_bytes(to + begin, slot(root), count);
  });
}

void Collectives::all_to_all(void* out, const void* in, int64_t bytes_of_part) {
  auto* to = static_cast<std::byte*>(out);
  const auto* from = static_cast<const std::byte*>(in);
  const int64_t piece = round_down(slot_bytes_ / size_, static_cast<int64_t>(kCacheLine));
  in_chunks(bytes_of_part, piece, [&](int64_t begin, int64_t bytes) {
    begin_chunk();
    for (int64_t part = 0; part < size_; ++part) {
      if (part != rank_) copy_bytes(slot(rank_) + part * piece, from + part * bytes_of_part + begin, bytes);
    }
    signal();
    copy_bytes(to + rank_ * bytes_of_part + begin, from + rank_ * bytes_of_part + begin, bytes);
    await(kAll);
    for (int64_t rank = 0; rank < size_; ++rank) {
      if (rank != rank_) copy_bytes(to + rank * bytes_of_part + begin, slot(rank) + rank_ * piece, bytes);
    }
  });
}

int64_t Collectives::largest_part(const std::vector<int64_t>& in_bytes) {
  const int64_t row = size_ * static_cast<int64_t>(sizeof(int64_t));
  RIDGELINE_ASSERT(row <= slot_bytes_);
  begin_chunk();
  copy_bytes(slot(rank_), in_bytes.data(), row);
  signal();
  await(kAll);
  std::vector<int64_t> sizes(static_cast<std::size_t>(size_));
  int64_t largest = 0;
  for (int64_t rank = 0; rank < size_; ++rank) {
    copy_bytes(sizes.data(), slot(rank), row);
    largest = std::max(largest, *std::max_element(sizes.begin(), sizes.end()));
  }
  return largest;
}

void Collectives::all_to_all_uneven(void* out, const std::vector<int64_t>& out_bytes, const void* in,
                                    const std::vector<int64_t>& in_bytes) {
  auto* to = static_cast<std::byte*>(out);
  const auto* from = static_cast<const std::byte*>(in);
  const auto begins = [](const std::vector<int64_t>& sizes) {
    std::vector<int64_t> list(sizes.size());
    for (std::size_t part = 1; part < sizes.size(); ++part) list[part] = list[part - 1] + sizes[part - 1];
    return list;
  };
  const std::vector<int64_t> to_begin = begins(out_bytes), from_begin = begins(in_bytes);
  const auto own = static_cast<std::size_t>(rank_);
  copy_bytes(to + to_begin[own], from + from_begin[own], in_bytes[own]);
  const int64_t piece = round_down(slot_bytes_ / size_, static_cast<int64_t>(kCacheLine));
  in_chunks(largest_part(in_bytes), piece, [&](int64_t begin, int64_t bytes) {
    const auto within = [&](int64_t part_bytes) { return std::clamp<int64_t>(part_bytes - begin, 0, bytes); };
    begin_chunk();
    for (int64_t rank = 0; rank < size_; ++rank) {
      const auto part = static_cast<std::size_t>(rank);
      if (rank != rank_) copy_bytes(slot(rank_) + rank * piece, from + from_begin[part] + begin, within(in_bytes[part]));
    }
    signal();
    await(kAll);
    for (int64_t rank = 0; rank < size_; ++rank) {
      const auto part = static_cast<std::size_t>(rank);
      if (rank != rank_) copy_bytes(to + to_begin[part] + begin, slot(rank) + rank_ * piece, within(out_bytes[part]));
    }
  });
}

}  // namespace ridgeline::mesh::shared_memory
