// Membership: one rank's place in a Segment, with what both collectives and messages need: how to sleep until another
// rank has done something, how to wake another, and how to notice that another will never do it.
//
// Sleeping without missing the waking follows one pattern. The sleeper reads its bell, says that it sleeps, looks once
// more at what it waits for, and sleeps only while the bell is unchanged; the other changes what is waited for and then
// looks whether anybody sleeps. All of these are sequentially consistent, so at least one of the two sees the other.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "mesh/shared_memory/segment.h"

namespace ridgeline::mesh::shared_memory {

// Sleeps while `word` is `seen`, at most `milliseconds`. May return early.
void sleep_on(std::atomic<uint32_t>& word, uint32_t seen, int milliseconds);
// Changes `word` and wakes all that sleep on it.
void ring(std::atomic<uint32_t>& word);

// How long a rank looks again and again before it sleeps. Where ranks have a core each, the others are about to come;
// where they share cores, looking keeps them from it.
class Patience {
 public:
  Patience(int64_t ranks, int cores);

  // Calls `ready` until it is true or patience is at its end.
  template <typename Ready>
  bool outlast(Ready ready) const {
    for (int look = 0; look < looks_; ++look) {
      if (ready()) return true;
      pause();
    }
    for (int look = 0; look < yields_; ++look) {
      if (ready()) return true;
      yield();
    }
    return ready();
  }

 private:
  static void pause();
  static void yield();
  int looks_;
  int yields_;
};

class Membership {
 public:
  // `members` are the ranks' numbers in the job, for messages; `timeout` in seconds bounds each wait.
  Membership(Segment segment, std::vector<int64_t> members, int64_t rank, double timeout, int cores);

  const Segment& segment() const { return segment_; }
  void all_have_attached() { segment_.close_descriptor(); }
  int64_t rank() const { return rank_; }
  int64_t size() const { return segment_.shape().ranks; }
  Seat& seat() const { return segment_.seat(rank_); }
  Seat& seat(int64_t rank) const { return segment_.seat(rank); }
  const Patience& patience() const { return patience_; }

  // This rank takes no further part: its own waits and those of others for it end with Failure.
  void leave();
  bool left() const { return left_.load(); }

  // Ranks of the group as text: "rank 3" or "ranks 1, 3 and 5 more".
  std::string text(const std::vector<int64_t>& ranks) const;

  // Why `rank` will do nothing any more, or empty. `thorough` asks the system too whether its process still runs.
  std::string gone(int64_t rank, bool thorough) const;

  // One wait: when to look thoroughly, and when it has taken too long.
  class Vigil {
   public:
    explicit Vigil(const Membership& membership) : membership_(membership) {}
    // To be called between sleeps with who is missing; throws Failure when one of them is gone or time is up. A rank
    // may have done its part before it went: `still_missing` is asked again for each that is gone.
    template <typename StillMissing>
    void check(const std::vector<int64_t>& missing, StillMissing still_missing) {
      const bool thorough = due();
      for (const int64_t rank : missing) {
        const std::string reason = membership_.gone(rank, thorough);
        if (!reason.empty() && still_missing(rank)) fail(reason);
      }
      if (membership_.left()) fail("this rank has left the group");
      if (expired()) fail_late(missing);
    }

   private:
    bool due();
    bool expired() const;
    [[noreturn]] void fail(const std::string& reason) const;
    [[noreturn]] void fail_late(const std::vector<int64_t>& missing) const;

    const Membership& membership_;
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
    std::chrono::steady_clock::time_point looked_ = begin_;
  };

  // Longest sleep between two checks.
  int nap_milliseconds() const { return nap_milliseconds_; }

 private:
  Segment segment_;
  std::vector<int64_t> members_;
  int64_t rank_;
  double timeout_;
  Patience patience_;
  int nap_milliseconds_;
  std::string place_;  // of processes, as heartbeat.h names it
  std::atomic<bool> left_{false};
};

}  // namespace ridgeline::mesh::shared_memory
