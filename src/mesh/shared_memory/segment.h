// Segment: the memory that the ranks of one group share when all run on one machine, as processes or as threads.
//
// It is an anonymous file (memfd): no name in any folder, gone when the last rank that maps it is gone, however it
// ends. The first member creates it, the others open it through /proc/PID/fd. It holds, for each rank, a Seat (its
// counters and what it sleeps for) and two slots, the halves of a double buffer that collectives pass data through; and,
// for each ordered pair of ranks, a Channel, a ring of bytes for messages. Pages that are never used take no memory.
//
// Nothing in a segment is a lock: a rank that dies in the midst of anything leaves nothing that others could block on
// but counters that stand still, which membership.h notices.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace ridgeline::mesh::shared_memory {

constexpr std::size_t kCacheLine = 64;

// Of one rank. Zero is the value of everything before the rank has come.
struct alignas(2 * kCacheLine) Seat {
  // Written by the rank.
  std::atomic<uint32_t> arrivals;  // how often it has signalled in collectives (collectives.h)
  std::atomic<uint32_t> gone;      // it will do nothing any more
  std::atomic<int64_t> process;
  std::atomic<uint64_t> process_start;
  // What it sleeps for in a collective: number of arrivals << 32 | rank to wait for + 2, or 1 for all; 0: it is awake.
  alignas(kCacheLine) std::atomic<uint64_t> awaited;
  // Words to sleep on, counted up by who wakes.
  std::atomic<uint32_t> bell;
  alignas(kCacheLine) std::atomic<uint32_t> message_bell;
  std::atomic<uint32_t> message_sleepers;
};

// Bytes go round in a ring: what was written and not yet read is written - read.
struct alignas(2 * kCacheLine) Channel {
  std::atomic<uint64_t> written;
  alignas(kCacheLine) std::atomic<uint64_t> read;
};

struct SegmentShape {
  int64_t ranks = 0;
  int64_t slot_bytes = 0;     // multiple of 4096
  int64_t channel_bytes = 0;  // power of two, at least 4096

  // Slots and channels that keep the segment of a large group small.
  static SegmentShape of_group(int64_t ranks);
};

class Segment {
 public:
  // Both throw Failure where the system refuses.
  static Segment create(const SegmentShape& shape);
  // `address` is what the creator's address() gave; it must still hold its descriptor.
  static Segment attach(const std::string& address, const SegmentShape& shape);

  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&&) = delete;
  ~Segment();

  const SegmentShape& shape() const { return shape_; }
  std::string address() const;
  // Nobody can attach from here on.
  void close_descriptor();

  Seat& seat(int64_t rank) const;
  std::byte* slot(int64_t rank, int64_t half) const;
  Channel& channel(int64_t from, int64_t to) const;
  std::byte* channel_data(int64_t from, int64_t to) const;

 private:
  Segment(int descriptor, const SegmentShape& shape);

  SegmentShape shape_;
  int descriptor_ = -1;
  uint64_t nonce_ = 0;
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace ridgeline::mesh::shared_memory
