// StreamClock: when a device's current stream reached a point, on the host's steady clock. On an accelerator a mark is
// a timed event, so that marking queues no wait; asking for its time waits until the stream has passed it. On the CPU a
// mark is the time at which it was made.
//
//   StreamClock clock(device);
//   const StreamClock::Mark mark = clock.mark();
//   ... queue work ...
//   double seconds = clock.seconds(mark);
#pragma once

#include <chrono>
#include <memory>
#include <variant>

#include "platform/device.h"

namespace c10 {
struct Event;
}

namespace ridgeline::platform {

class StreamClock {
 public:
  using Clock = std::chrono::steady_clock;
  using Mark = std::variant<Clock::time_point, std::shared_ptr<c10::Event>>;

  // Waits for all that the device has queued, to know both clocks at one moment.
  explicit StreamClock(const Device& device);

  Mark mark() const;
  // Since the steady clock's own beginning.
  double seconds(const Mark& mark) const;

 private:
  std::shared_ptr<c10::Event> record() const;

  Device device_;
  Clock::time_point origin_;                  // when `origin_event_` was passed
  std::shared_ptr<c10::Event> origin_event_;  // none on the CPU
};

}  // namespace ridgeline::platform
