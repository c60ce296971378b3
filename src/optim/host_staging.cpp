#include "optim/host_staging.h"

#include <ATen/DeviceAccelerator.h>
#include <c10/core/Event.h>

namespace ridgeline::optim {

// A point of the device's current stream that the host can wait for.
struct HostStaging::Event {
  explicit Event(at::Device device) : device(device), event(device.type()) {}
  void record() { event.record(at::accelerator::getCurrentStream(device.index())); }
  void wait() { event.synchronize(); }

  at::Device device;
  c10::Event event;
};

HostStaging::HostStaging(at::Device device, at::ScalarType compute, int64_t most) : device_(device) {
  for (Place& place : places_) {
    place.gradients = at::zeros({most}, host_options(device, at::kFloat));
    place.values = at::zeros({most}, host_options(device, compute));
    if (device.is_cpu()) continue;
    place.arrived = std::make_unique<Event>(device);
    place.left = std::make_unique<Event>(device);
    place.left->record();
  }
}

HostStaging::~HostStaging() = default;

void HostStaging::fetch(size_t turn, const at::Tensor& gradients) {
  place(turn).gradients.narrow(0, 0, gradients.numel()).copy_(gradients, /*non_blocking=*/true);
  if (place(turn).arrived) place(turn).arrived->record();
}

at::Tensor HostStaging::gradients(size_t turn, int64_t size) {
  if (place(turn).arrived) place(turn).arrived->wait();
  return place(turn).gradients.narrow(0, 0, size);
}

at::Tensor HostStaging::values(size_t turn, int64_t size) {
  if (place(turn).left) place(turn).left->wait();
  return place(turn).values.narrow(0, 0, size);
}

void HostStaging::store(size_t turn, const at::Tensor& values) {
  const_cast<at::Tensor&>(values).copy_(place(turn).values.narrow(0, 0, values.numel()), /*non_blocking=*/true);
  if (place(turn).left) place(turn).left->record();
}

at::TensorOptions host_options(at::Device device, at::ScalarType type) {
  return at::TensorOptions().dtype(type).device(at::kCPU).pinned_memory(!device.is_cpu());
}

}  // namespace ridgeline::optim
