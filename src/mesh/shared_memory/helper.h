// Helper: a thread that takes up what its owner left pending, so that a rank which computes still takes part in what it
// started and does not hold up the others.
//
// Most operations are waited for at once and done by the waiting thread itself. Waking another thread for each would
// cost more than the operation. So starting one only notes that something is pending; one Attendant for the process
// looks round each millisecond and starts the helper of whoever had the same thing pending at its last look too. With
// nothing pending anywhere for a while it sleeps until told.
//
// A helper is of one group and one kind of traffic, and so may block as long as it must: whatever the other groups of
// this rank or of others wait for, it is never behind it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

namespace ridgeline::mesh::shared_memory {

class Attendant;

class Helper {
 public:
  class Client {
   public:
    // Names what has been pending longest; 0 where nothing is, or where a thread is at it. Called by the attendant, at
    // any time: must not block.
    virtual uint64_t oldest_pending() const = 0;
    // Does what is pending. Must not throw.
    virtual void help() = 0;

   protected:
    ~Client() = default;
  };

  explicit Helper(Client& client);
  // The client must have made sure that help() returns.
  ~Helper();
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  // The client has something pending, and oldest_pending() says so already.
  void notice();

 private:
  friend class Attendant;
  bool look();  // by the attendant; true where something is pending
  void run();

  Client& client_;
  const std::shared_ptr<Attendant> attendant_;
  uint64_t last_seen_ = 0;  // of the attendant
  std::mutex mutex_;
  std::condition_variable changed_;
  bool wanted_ = false;
  bool stop_ = false;
  std::thread thread_;  // from the first time that it is wanted
};

}  // namespace ridgeline::mesh::shared_memory
