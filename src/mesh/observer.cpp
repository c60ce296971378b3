#include "mesh/observer.h"

#include <utility>

#include "core/error.h"

namespace ridgeline::mesh {

std::string to_string(Operation operation) {
  switch (operation) {
    case Operation::all_reduce:
      return "all_reduce";
    case Operation::all_gather:
      return "all_gather";
    case Operation::reduce_scatter:
      return "reduce_scatter";
    case Operation::broadcast:
      return "broadcast";
    case Operation::all_to_all:
      return "all_to_all";
    case Operation::send:
      return "send";
    case Operation::receive:
      return "receive";
    case Operation::shift:
      return "shift";
    case Operation::barrier:
      return "barrier";
  }
  throw InternalError("operation {}", static_cast<int>(operation));
}

void RecordingObserver::finished(const OperationRecord& record) {
  const std::lock_guard lock(mutex_);
  records_.push_back(record);
}

std::vector<OperationRecord> RecordingObserver::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(records_, {});
}

}  // namespace ridgeline::mesh
