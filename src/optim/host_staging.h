// HostStaging: carries gradients of one bucket after another from a device to the host, and updated values back, for an
// optimizer whose state is kept in host memory. While the host works on one bucket, the next one's gradients arrive and
// the last one's values leave: two buckets have room, which take turns. On the CPU the same copies are made at once.
//
//   staging.fetch(turn, gradients)                        starts the copy to the host
//   at::Tensor gradients = staging.gradients(turn, size)  waits for it
//   at::Tensor values = staging.values(turn, size)        waits until the values of two turns ago have left; to be filled
//   staging.store(turn, on_device)                        starts the copy to the device
//
// Copies travel on the device's current stream, so what is queued there later sees the values.
#pragma once

#include <ATen/ATen.h>

#include <memory>

namespace ridgeline::optim {

class HostStaging {
 public:
  // `most`: elements of the largest bucket. Gradients are fp32, values in the compute precision.
  HostStaging(at::Device device, at::ScalarType compute, int64_t most);
  ~HostStaging();

  void fetch(size_t turn, const at::Tensor& gradients);
  at::Tensor gradients(size_t turn, int64_t size);
  at::Tensor values(size_t turn, int64_t size);
  void store(size_t turn, const at::Tensor& values);

 private:
  struct Event;
  struct Place {
    at::Tensor gradients, values;
    std::unique_ptr<Event> arrived, left;  // none on the CPU
  };
  Place& place(size_t turn) { return places_[turn % 2]; }

  at::Device device_;
  Place places_[2];
};

// Tensors in host memory that the device copies from and to without the host's help.
at::TensorOptions host_options(at::Device device, at::ScalarType type);

}  // namespace ridgeline::optim
