// DeviceTimer: seconds between two points of a device's current stream. On an accelerator it is two timed events, so
// that starting and stopping queue no wait; reading waits for the second one. On the CPU it is the steady clock.
//
//   DeviceTimer timer(device);
//   timer.start();
//   ... queue work ...
//   timer.stop();
//   double seconds = timer.seconds();
#pragma once

#include <chrono>
#include <memory>

#include "platform/device.h"

namespace ridgeline::platform {

class DeviceTimer {
 public:
  explicit DeviceTimer(const Device& device);
  ~DeviceTimer();
  DeviceTimer(DeviceTimer&&) noexcept;
  DeviceTimer& operator=(DeviceTimer&&) noexcept;

  void start();
  void stop();
  // Of the last start() and stop(); both must have been called.
  double seconds() const;

 private:
  struct Events;
  Device device_;
  std::unique_ptr<Events> events_;  // none on the CPU
  std::chrono::steady_clock::time_point started_;
  std::chrono::steady_clock::time_point stopped_;
};

}  // namespace ridgeline::platform
