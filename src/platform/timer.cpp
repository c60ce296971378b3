#include "platform/timer.h"

#include <ATen/DeviceAccelerator.h>
#include <c10/core/Event.h>

namespace ridgeline::platform {

// BACKEND_DEFAULT asks for events that keep a time; torch's own default is events without one.
struct DeviceTimer::Events {
  explicit Events(c10::DeviceType type)
      : begin(type, c10::EventFlag::BACKEND_DEFAULT), end(type, c10::EventFlag::BACKEND_DEFAULT) {}
  c10::Event begin;
  c10::Event end;
};

DeviceTimer::DeviceTimer(const Device& device) : device_(device) {
  if (!device.is_cpu()) events_ = std::make_unique<Events>(device.torch().type());
}
DeviceTimer::~DeviceTimer() = default;
DeviceTimer::DeviceTimer(DeviceTimer&&) noexcept = default;
DeviceTimer& DeviceTimer::operator=(DeviceTimer&&) noexcept = default;

void DeviceTimer::start() {
  if (events_) {
    events_->begin.record(at::accelerator::getCurrentStream(device_.torch().index()));
  } else {
    started_ = std::chrono::steady_clock::now();
  }
}

void DeviceTimer::stop() {
  if (events_) {
    events_->end.record(at::accelerator::getCurrentStream(device_.torch().index()));
  } else {
    stopped_ = std::chrono::steady_clock::now();
  }
}

double DeviceTimer::seconds() const {
  if (!events_) return std::chrono::duration<double>(stopped_ - started_).count();
  events_->end.synchronize();
  return events_->begin.elapsedTime(events_->end) / 1000.0;
}

}  // namespace ridgeline::platform
