#include "mesh/shared_memory/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>
#include <random>
#include <sstream>
#include <utility>

#include "core/error.h"

namespace ridgeline::mesh::shared_memory {
namespace {

static_assert(std::atomic<uint32_t>::is_always_lock_free && std::atomic<uint64_t>::is_always_lock_free);
static_assert(sizeof(std::atomic<uint32_t>) == 4, "the kernel sleeps on 32 bits");

constexpr int64_t kPage = 4096;
constexpr uint64_t kMagic = 0x52494447454c0001;

struct Header {
  uint64_t magic;
  uint64_t nonce;
  SegmentShape shape;
};

int64_t whole_pages(int64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

int64_t pairs(const SegmentShape& shape) { return shape.ranks * shape.ranks; }

// header | seats | channels | channels' data | slots
int64_t seats_at() { return kPage; }
int64_t channels_at(const SegmentShape& shape) {
  return seats_at() + whole_pages(shape.ranks * static_cast<int64_t>(sizeof(Seat)));
}
int64_t channel_data_at(const SegmentShape& shape) {
  return channels_at(shape) + whole_pages(pairs(shape) * static_cast<int64_t>(sizeof(Channel)));
}
int64_t slots_at(const SegmentShape& shape) { return channel_data_at(shape) + pairs(shape) * shape.channel_bytes; }
int64_t total(const SegmentShape& shape) { return slots_at(shape) + 2 * shape.ranks * shape.slot_bytes; }

}  // namespace

SegmentShape SegmentShape::of_group(int64_t ranks) {
  RIDGELINE_ASSERT(ranks > 0 && ranks <= 4096);
  constexpr int64_t most_channel_bytes = int64_t{1} << 20;
  constexpr int64_t all_channels = int64_t{64} << 20;
  SegmentShape shape;
  shape.ranks = ranks;
  // Large enough that waking each other costs little of the time, small enough to stay in a cache.
  shape.slot_bytes = int64_t{512} << 10;
  const int64_t share = std::clamp(all_channels / (ranks * ranks), kPage, most_channel_bytes);
  shape.channel_bytes = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(share)));
  return shape;
}

Segment::Segment(int descriptor, const SegmentShape& shape)
    : shape_(shape), descriptor_(descriptor), bytes_(static_cast<std::size_t>(total(shape))) {}

Segment::Segment(Segment&& other) noexcept
    : shape_(other.shape_),
      descriptor_(std::exchange(other.descriptor_, -1)),
      nonce_(other.nonce_),
      memory_(std::exchange(other.memory_, nullptr)),
      bytes_(other.bytes_) {}

Segment::~Segment() {
  if (memory_ != nullptr) munmap(memory_, bytes_);
  close_descriptor();
}

void Segment::close_descriptor() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

namespace {

std::byte* map(int descriptor, std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
  if (memory == MAP_FAILED) throw Failure("mapping {} bytes of shared memory failed: {}", bytes, std::strerror(errno));
  return static_cast<std::byte*>(memory);
}

}  // namespace

Segment Segment::create(const SegmentShape& shape) {
  Segment segment(memfd_create("ridgeline", MFD_CLOEXEC), shape);
  if (segment.descriptor_ < 0) throw Failure("making shared memory failed: {}", std::strerror(errno));
  if (ftruncate(segment.descriptor_, static_cast<off_t>(segment.bytes_)) != 0) {
    throw Failure("making shared memory of {} bytes failed: {}", segment.bytes_, std::strerror(errno));
  }
  segment.memory_ = map(segment.descriptor_, segment.bytes_);
  std::random_device random;
  segment.nonce_ = (static_cast<uint64_t>(random()) << 32) | random();
  for (int64_t rank = 0; rank < shape.ranks; ++rank) new (&segment.seat(rank)) Seat{};
  for (int64_t from = 0; from < shape.ranks; ++from) {
    for (int64_t to = 0; to < shape.ranks; ++to) new (&segment.channel(from, to)) Channel{};
  }
  new (segment.memory_) Header{kMagic, segment.nonce_, shape};
  return segment;
}

std::string Segment::address() const { return fmt::format("{} {} {}", getpid(), descriptor_, nonce_); }

Segment Segment::attach(const std::string& address, const SegmentShape& shape) {
  std::istringstream fields(address);
  int64_t process = 0;
  int descriptor = -1;
  uint64_t nonce = 0;
  if (!(fields >> process >> descriptor >> nonce) || process <= 0 || descriptor < 0) {
    throw Failure("\"{}\" is no address of shared memory (PID DESCRIPTOR NONCE)", address);
  }
  const std::string path = fmt::format("/proc/{}/fd/{}", process, descriptor);
  Segment segment(::open(path.c_str(), O_RDWR | O_CLOEXEC), shape);
  if (segment.descriptor_ < 0) throw Failure("opening {} failed: {}", path, std::strerror(errno));
  struct stat status {};
  if (fstat(segment.descriptor_, &status) != 0 || status.st_size != static_cast<off_t>(segment.bytes_)) {
    throw Failure("{} is not the shared memory of {} ranks: it has {} bytes, expected {}", path, shape.ranks,
                  status.st_size, segment.bytes_);
  }
  segment.memory_ = map(segment.descriptor_, segment.bytes_);
  const auto* header = reinterpret_cast<const Header*>(segment.memory_);
  if (header->magic != kMagic || header->nonce != nonce || header->shape.ranks != shape.ranks) {
    throw Failure("{} is the memory of another job or another version of Ridgeline", path);
  }
  segment.close_descriptor();
  return segment;
}

Seat& Segment::seat(int64_t rank) const { return reinterpret_cast<Seat*>(memory_ + seats_at())[rank]; }

Channel& Segment::channel(int64_t from, int64_t to) const {
  return reinterpret_cast<Channel*>(memory_ + channels_at(shape_))[from * shape_.ranks + to];
}

std::byte* Segment::channel_data(int64_t from, int64_t to) const {
  return memory_ + channel_data_at(shape_) + (from * shape_.ranks + to) * shape_.channel_bytes;
}

std::byte* Segment::slot(int64_t rank, int64_t half) const {
  return memory_ + slots_at(shape_) + (rank * 2 + half) * shape_.slot_bytes;
}

}  // namespace ridgeline::mesh::shared_memory
