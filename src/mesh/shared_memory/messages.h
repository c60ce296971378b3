// Messages between two ranks of a group, through the ring of bytes of their Channel.
//
// Protocol. Each message is a head (its bytes and tag) and its bytes, both rounded up to 16, written one after another
// as far as the ring has room, while the other end reads. So a message that fits is sent at once, and a larger one as
// it is received. The reader gives each message to the first receive that was posted with its tag; where there is none,
// but another receive waits behind it, the message is put aside. With no receive posted it stays in the ring.
//
// All of it moves without ever blocking, in progress(), by whoever comes by: the thread that starts an operation, the
// one that waits for one, or the helper. Only a wait sleeps, and then any message of this rank in this group can wake
// it. A wait fails as those of collectives do.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "mesh/shared_memory/helper.h"
#include "mesh/shared_memory/membership.h"

namespace ridgeline::mesh::shared_memory {

struct Message {
  int64_t peer = 0;
  int64_t tag = 0;
  int64_t bytes = 0;
  std::byte* data = nullptr;         // read only where it is sent
  std::shared_ptr<const void> keep;  // what `data` belongs to, until it is done
  uint64_t number = 0;
  int64_t moved = 0;
  bool head_moved = false;
  std::exception_ptr error;
  std::atomic<bool> done{false};
};

class Messages final : private Helper::Client {
 public:
  explicit Messages(const Membership& membership);
  ~Messages() = default;

  std::shared_ptr<Message> send(const void* data, int64_t bytes, int64_t peer, int64_t tag,
                                std::shared_ptr<const void> keep);
  std::shared_ptr<Message> receive(void* data, int64_t bytes, int64_t peer, int64_t tag,
                                   std::shared_ptr<const void> keep);
  void wait(Message& message);
  // Nothing moves from here on; the membership must have left.
  void close();

 private:
  // A message without a receive.
  struct Stray {
    int64_t tag = 0;
    std::vector<std::byte> data;
    bool whole = false;
    std::shared_ptr<Message> claim;  // a receive that came while it was being read
  };
  struct Peer {
    std::deque<std::shared_ptr<Message>> sends;
    std::deque<std::shared_ptr<Message>> receives;  // without a message
    std::deque<std::shared_ptr<Stray>> strays;
    // The message that is being read: into a receive or a stray.
    std::shared_ptr<Message> reading;
    std::shared_ptr<Stray> reading_stray;
  };

  uint64_t oldest_pending() const override { return oldest_.load(); }
  void help() override;

  std::shared_ptr<Message> start(bool sends, std::shared_ptr<Message> message);
  // With the mutex held.
  void progress();
  bool push(int64_t peer);
  bool pull(int64_t peer);
  void begin_reading(int64_t peer, int64_t bytes, int64_t tag);
  void end_reading(int64_t peer);
  bool claim_stray(Peer& peer, const std::shared_ptr<Message>& receive);
  void finish(Message& message);
  void deliver(Message& receive, const Stray& stray);
  void note_oldest();
  // Sleeps until something has moved, or for a nap.
  void sleep_unless(std::unique_lock<std::mutex>& lock, const std::function<bool()>& ready);
  void wake(int64_t peer);

  const Membership& membership_;
  std::mutex mutex_;
  std::vector<Peer> peers_;
  uint64_t started_ = 0;
  int64_t pending_ = 0;
  int waiters_ = 0;
  bool closed_ = false;
  std::exception_ptr error_;  // what the helper met with
  bool finished_some_ = false;
  std::atomic<uint64_t> oldest_{0};
  Helper helper_;  // last: stops first
};

}  // namespace ridgeline::mesh::shared_memory
