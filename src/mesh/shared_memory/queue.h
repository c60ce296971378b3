// OperationQueue: the collectives that a rank has started in one group, done one at a time in the order in which they
// were started: by the thread that waits for one of them, or by the helper.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>

#include "mesh/shared_memory/helper.h"

namespace ridgeline::mesh::shared_memory {

class OperationQueue final : private Helper::Client {
 public:
  // One operation. Of the queue but for `done`.
  struct Entry {
    uint64_t number = 0;
    std::function<void()> operation;
    std::exception_ptr error;
    std::atomic<bool> done{false};
  };

  // `failed` is called, once, when an operation has thrown. All that come after it throw the same.
  explicit OperationQueue(std::function<void()> failed) : failed_(std::move(failed)), helper_(*this) {}
  // An operation that is being done must be about to end; those not yet begun are dropped.
  ~OperationQueue() = default;

  std::shared_ptr<Entry> start(std::function<void()> operation);
  // Rethrows what the operation threw.
  void wait(Entry& entry);
  // No operation begins from here on.
  void close();

 private:
  uint64_t oldest_pending() const override { return oldest_.load(); }
  void help() override;
  void do_first(std::unique_lock<std::mutex>& lock);
  void note_oldest();

  const std::function<void()> failed_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Entry>> entries_;
  std::exception_ptr error_;
  bool busy_ = false;
  bool closed_ = false;
  uint64_t started_ = 0;
  std::atomic<uint64_t> oldest_{0};
  Helper helper_;  // last: stops first
};

}  // namespace ridgeline::mesh::shared_memory
