#include "platform/counting_allocator.h"

#include <c10/core/CPUAllocator.h>

#include <array>
#include <atomic>
#include <cstring>
#include <limits>
#include <mutex>

#include "core/error.h"

namespace ridgeline::platform {
namespace {

// c10 aligns CPU blocks to 64 bytes (gAlignment); a line of that size in front keeps it.
constexpr std::size_t line_bytes = 64;
constexpr int owners = 64;

// Never destroyed: tensors of static lifetime are freed after main().
struct Counters {
  at::Allocator* below = nullptr;
  at::DeleterFnPtr free_below = nullptr;
  std::atomic<int64_t> now{0};
  std::atomic<int64_t> peak{0};
  std::array<std::atomic<int64_t>, owners> of_owner{};
};
Counters& counters() {
  static auto* instance = new Counters;
  return *instance;
}

thread_local int this_owner = 0;

// In front of each block.
struct Label {
  int64_t bytes = 0;
  int64_t owner = 0;
};

void count_up(const Label& label) {
  Counters& counts = counters();
  const int64_t bytes = label.bytes;
  counts.of_owner[label.owner].fetch_add(bytes, std::memory_order_relaxed);
  const int64_t now = counts.now.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  int64_t peak = counts.peak.load(std::memory_order_relaxed);
  while (now > peak && !counts.peak.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

void free_counted(void* data) {
  if (data == nullptr) return;
  char* line = static_cast<char*>(data) - line_bytes;
  Label label;
  std::memcpy(&label, line, sizeof(label));
  counters().now.fetch_sub(label.bytes, std::memory_order_relaxed);
  counters().of_owner[label.owner].fetch_sub(label.bytes, std::memory_order_relaxed);
  counters().free_below(line);
}

class CountingAllocator final : public at::Allocator {
 public:
  at::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &free_counted, at::Device(at::kCPU)};
    if (bytes > static_cast<std::size_t>(std::numeric_limits<int64_t>::max()) - line_bytes) {
      throw Failure("a CPU tensor of {} bytes was asked for, more than any machine has", bytes);
    }
    char* line = static_cast<char*>(counters().below->raw_allocate(bytes + line_bytes));
    const Label label{static_cast<int64_t>(bytes), this_owner};
    std::memcpy(line, &label, sizeof(label));
    count_up(label);
    void* data = line + line_bytes;
    return {data, data, &free_counted, at::Device(at::kCPU)};
  }

  at::DeleterFnPtr raw_deleter() const override { return &free_counted; }

  void copy_data(void* destination, const void* source, std::size_t bytes) const override {
    default_copy_data(destination, source, bytes);
  }
};

}  // namespace

void install_counting_allocator() {
  static std::once_flag once;
  std::call_once(once, [] {
    counters().below = c10::GetCPUAllocator();
    counters().free_below = counters().below->raw_deleter();
    if (counters().free_below == nullptr) {
      throw Failure("this torch's CPU allocator has no raw deleter, so CPU memory cannot be counted");
    }
    c10::SetCPUAllocator(new CountingAllocator, /*priority=*/200);
  });
}

int64_t counted_bytes() { return counters().now.load(std::memory_order_relaxed); }
void count_allocations_for(int owner) {
  RIDGELINE_ASSERT(owner >= 0 && owner < owners);
  this_owner = owner;
}
int64_t counted_bytes(int owner) { return counters().of_owner.at(owner).load(std::memory_order_relaxed); }

int64_t counted_peak_bytes() { return counters().peak.load(std::memory_order_relaxed); }
void reset_counted_peak() { counters().peak.store(counted_bytes(), std::memory_order_relaxed); }

}  // namespace ridgeline::platform
