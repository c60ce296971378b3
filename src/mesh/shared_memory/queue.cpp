#include "mesh/shared_memory/queue.h"

#include <utility>

#include "core/error.h"

namespace ridgeline::mesh::shared_memory {

void OperationQueue::note_oldest() { oldest_ = busy_ || closed_ || entries_.empty() ? 0 : entries_.front()->number; }

std::shared_ptr<OperationQueue::Entry> OperationQueue::start(std::function<void()> operation) {
  auto entry = std::make_shared<Entry>();
  entry->operation = std::move(operation);
  {
    const std::lock_guard lock(mutex_);
    entry->number = ++started_;
    entries_.push_back(entry);
    note_oldest();
  }
  helper_.notice();
  return entry;
}

void OperationQueue::do_first(std::unique_lock<std::mutex>& lock) {
  const std::shared_ptr<Entry> entry = entries_.front();
  busy_ = true;
  note_oldest();
  std::exception_ptr error = error_;
  lock.unlock();
  if (!error) {
    try {
      entry->operation();
    } catch (...) {
      error = std::current_exception();
      failed_();
    }
  }
  entry->operation = nullptr;
  lock.lock();
  error_ = error;
  entry->error = error;
  entries_.pop_front();
  entry->done = true;
  busy_ = false;
  note_oldest();
  changed_.notify_all();
}

void OperationQueue::wait(Entry& entry) {
  std::unique_lock lock(mutex_);
  while (!entry.done.load()) {
    if (closed_) throw Failure("the group was closed");
    if (busy_) {
      changed_.wait(lock);
    } else {
      do_first(lock);
    }
  }
  if (entry.error) std::rethrow_exception(entry.error);
}

void OperationQueue::help() {
  std::unique_lock lock(mutex_);
  // Where a thread is at it that waits for one of them, what it leaves over will be seen again.
  while (!busy_ && !closed_ && !entries_.empty()) do_first(lock);
}

void OperationQueue::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  note_oldest();
  changed_.notify_all();
}

}  // namespace ridgeline::mesh::shared_memory
