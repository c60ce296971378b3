// Device: where a rank computes. CUDA and ROCm (which torch calls cuda as well) and XPU go through at::accelerator, the
// CPU through a branch of its own, so that no caller asks which vendor it is.
//
//   Device device = Device::select("auto", environment.local_rank);
//   device.make_current();
//   device.reset_peak();
//   ...
//   int64_t most = device.peak_bytes();
//
// Memory is what tensors were given by torch's allocator, in bytes, not what the process or driver holds. On the CPU
// the first Device puts a counting allocator before torch's own, so figures there are exact and count from then on;
// ranks that are threads of one process share them.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <string>

namespace ridgeline::platform {

enum class DeviceKind { cpu, cuda, xpu };
std::string to_string(DeviceKind kind);

class Device {
 public:
  // `name` is auto (an accelerator where there is one, else cpu), cpu, cuda or xpu. A rank takes the accelerator whose
  // index is its local rank, or the only one where the launcher shows each rank just its own. Throws InputError where
  // the name is unknown, and Failure where this torch or machine has no such device or too few of them.
  static Device select(const std::string& name, int64_t local_rank = 0);

  DeviceKind kind() const { return kind_; }
  bool is_cpu() const { return kind_ == DeviceKind::cpu; }
  at::Device torch() const { return torch_; }

  // What the maker calls it, such as "NVIDIA H100 80GB HBM3"; "cuda" or "xpu" where no driver tells.
  const std::string& name() const { return name_; }

  // Makes it the calling thread's current device.
  void make_current() const;
  // Returns when all work queued on it is done.
  void synchronize() const;

  int64_t allocated_bytes() const;
  int64_t peak_bytes() const;
  void reset_peak() const;
  // All memory that it has: the device's, or for the CPU the machine's, or what a container leaves of it.
  int64_t total_bytes() const;
  // Gives cached, unused blocks back to the driver; nothing on the CPU.
  void empty_cache() const;

 private:
  Device(DeviceKind kind, at::Device torch, std::string name);

  DeviceKind kind_;
  at::Device torch_;
  std::string name_;
};

// Threads that torch may use inside one operation, in this process. Throws InputError below 1.
void set_threads(int64_t threads);
int64_t threads();

}  // namespace ridgeline::platform
