#include "mesh/shared_memory/membership.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <ctime>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "core/error.h"
#include "mesh/heartbeat.h"

namespace ridgeline::mesh::shared_memory {
namespace {

constexpr double kSecondsBetweenLooks = 0.5;

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

// Not the private kind of futex: the same word has another address in each process.
void sleep_on(std::atomic<uint32_t>& word, uint32_t seen, int milliseconds) {
  const timespec time{milliseconds / 1000, (milliseconds % 1000) * 1000000L};
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT, seen, &time, nullptr, 0);
}

void ring(std::atomic<uint32_t>& word) {
  word.fetch_add(1);
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

Patience::Patience(int64_t ranks, int cores) : looks_(ranks <= cores ? 500 : 20), yields_(2) {}

void Patience::pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void Patience::yield() { sched_yield(); }

Membership::Membership(Segment segment, std::vector<int64_t> members, int64_t rank, double timeout, int cores)
    : segment_(std::move(segment)),
      members_(std::move(members)),
      rank_(rank),
      timeout_(timeout),
      patience_(*std::max_element(members_.begin(), members_.end()) + 1, cores),
      nap_milliseconds_(static_cast<int>(std::clamp(timeout * 250.0, 1.0, kSecondsBetweenLooks * 1000.0))) {
  RIDGELINE_ASSERT(static_cast<int64_t>(members_.size()) == size() && rank >= 0 && rank < size());
  const ProcessName process = this_process();
  place_ = process.place;
  seat().process = process.process;
  seat().process_start = process.start_time;
}

void Membership::leave() {
  if (left_.exchange(true)) return;
  seat().gone = 1;
  for (int64_t rank = 0; rank < size(); ++rank) {
    ring(seat(rank).bell);
    ring(seat(rank).message_bell);
  }
}

std::string Membership::text(const std::vector<int64_t>& ranks) const {
  constexpr std::size_t most = 8;
  std::string numbers;
  for (std::size_t index = 0; index < std::min(ranks.size(), most); ++index) {
    numbers += fmt::format("{}{}", index == 0 ? "" : ", ", members_[static_cast<std::size_t>(ranks[index])]);
  }
  if (ranks.size() > most) numbers += fmt::format(" and {} more", ranks.size() - most);
  return (ranks.size() == 1 ? "rank " : "ranks ") + numbers;
}

std::string Membership::gone(int64_t rank, bool thorough) const {
  const Seat& other = seat(rank);
  if (other.gone.load() != 0) return text({rank}) + " has left the group";
  if (!thorough) return "";
  const ProcessName process{place_, other.process.load(), other.process_start.load()};
  if (has_ended(process)) return fmt::format("{} (process {}) has ended", text({rank}), process.process);
  return "";
}

bool Membership::Vigil::due() {
  if (seconds_since(looked_) < kSecondsBetweenLooks) return false;
  looked_ = std::chrono::steady_clock::now();
  return true;
}

bool Membership::Vigil::expired() const { return seconds_since(begin_) > membership_.timeout_; }

void Membership::Vigil::fail(const std::string& reason) const { throw Failure("{}", reason); }

void Membership::Vigil::fail_late(const std::vector<int64_t>& missing) const {
  throw Failure("{} did not come within {:g} s", membership_.text(missing), membership_.timeout_);
}

}  // namespace ridgeline::mesh::shared_memory
