#include "platform/stream_clock.h"

#include <ATen/DeviceAccelerator.h>
#include <c10/core/Event.h>

namespace ridgeline::platform {

StreamClock::StreamClock(const Device& device) : device_(device), origin_(Clock::now()) {
  if (device.is_cpu()) return;
  device.synchronize();
  origin_event_ = record();
  origin_event_->synchronize();
  origin_ = Clock::now();
}

// BACKEND_DEFAULT asks for events that keep a time; torch's own default is events without one.
std::shared_ptr<c10::Event> StreamClock::record() const {
  auto event = std::make_shared<c10::Event>(device_.torch().type(), c10::EventFlag::BACKEND_DEFAULT);
  event->record(at::accelerator::getCurrentStream(device_.torch().index()));
  return event;
}

StreamClock::Mark StreamClock::mark() const {
  if (device_.is_cpu()) return Clock::now();
  return record();
}

double StreamClock::seconds(const Mark& mark) const {
  if (const auto* time = std::get_if<Clock::time_point>(&mark)) {
    return std::chrono::duration<double>(time->time_since_epoch()).count();
  }
  const auto& event = std::get<std::shared_ptr<c10::Event>>(mark);
  event->synchronize();
  return std::chrono::duration<double>(origin_.time_since_epoch()).count() + origin_event_->elapsedTime(*event) / 1e3;
}

}  // namespace ridgeline::platform
