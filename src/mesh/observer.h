// Observer: is told of every operation of a communicator: traces, the comparison with the cost room, the watchdog's
// notes.
#pragma once

#include <c10/core/ScalarType.h>

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace ridgeline::mesh {

enum class Operation { all_reduce, all_gather, reduce_scatter, broadcast, all_to_all, send, receive, shift, barrier };
std::string to_string(Operation operation);

struct OperationRecord {
  using Clock = std::chrono::steady_clock;

  Operation operation = Operation::barrier;
  std::string group;  // name of the communicator
  int64_t group_size = 1;
  int64_t peer = -1;      // rank in the group of the other side, or of a broadcast's root
  uint64_t sequence = 0;  // counts this communicator's operations from 0
  // The whole message: the tensor reduced, sent or broadcast; all_gather's output; reduce_scatter's, all_to_all's and
  // shift's input.
  int64_t elements = 0;
  int64_t bytes = 0;
  at::ScalarType type = at::ScalarType::Float;
  Clock::time_point issued;  // the operation was started
  Clock::time_point waited;  // wait() was called: from here on the rank is idle
  Clock::time_point done;    // wait() returned; on an accelerator its stream may still be waiting
};

class Observer {
 public:
  virtual ~Observer() = default;
  // By the thread that starts the operation, before it starts. Times after `issued` are not set.
  virtual void started(const OperationRecord& record) = 0;
  // By the thread that waits, before it does.
  virtual void waiting(const OperationRecord& record) {}
  // By the same, once.
  virtual void finished(const OperationRecord& record) = 0;
};

// Keeps all records of finished operations, in the order in which they finished.
class RecordingObserver final : public Observer {
 public:
  void started(const OperationRecord& record) override {}
  void finished(const OperationRecord& record) override;
  std::vector<OperationRecord> take();

 private:
  std::mutex mutex_;
  std::vector<OperationRecord> records_;
};

}  // namespace ridgeline::mesh
