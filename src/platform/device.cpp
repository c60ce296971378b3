#include "platform/device.h"

#include <ATen/DeviceAccelerator.h>
#include <ATen/Parallel.h>

#include <optional>
#include <utility>

#include "core/error.h"
#include "launch/memory.h"
#include "platform/counting_allocator.h"
#include "platform/device_name.h"

namespace ridgeline::platform {
namespace {

// The accelerator that this torch was built for and this machine has.
std::optional<DeviceKind> accelerator_here() {
  const std::optional<c10::DeviceType> type = at::accelerator::getAccelerator(false);
  if (!type || at::accelerator::deviceCount() < 1) return std::nullopt;
  // ROCm builds answer HIP or CUDA here, and CUDA everywhere else.
  if (*type == c10::DeviceType::CUDA || *type == c10::DeviceType::HIP) return DeviceKind::cuda;
  if (*type == c10::DeviceType::XPU) return DeviceKind::xpu;
  return std::nullopt;
}

DeviceKind kind_called(const std::string& name) {
  if (name == "auto") return accelerator_here().value_or(DeviceKind::cpu);
  if (name == "cpu") return DeviceKind::cpu;
  if (name == "cuda") return DeviceKind::cuda;
  if (name == "xpu") return DeviceKind::xpu;
  throw InputError("training.device = \"{}\": expected auto, cpu, cuda (NVIDIA and AMD) or xpu (Intel)", name);
}

}  // namespace

std::string to_string(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::cpu:
      return "cpu";
    case DeviceKind::cuda:
      return "cuda";
    case DeviceKind::xpu:
      return "xpu";
  }
  throw InternalError("device kind {}", static_cast<int>(kind));
}

Device::Device(DeviceKind kind, at::Device torch, std::string name)
    : kind_(kind), torch_(torch), name_(std::move(name)) {}

Device Device::select(const std::string& name, int64_t local_rank) {
  const DeviceKind kind = kind_called(name);
  if (kind == DeviceKind::cpu) {
    install_counting_allocator();
    return Device(kind, at::Device(at::kCPU), cpu_name());
  }
  if (accelerator_here() != kind) {
    throw Failure(
        "training.device = \"{}\": this torch sees no such device; expected at least one. Check that the installed "
        "torch "
        "package is a {} build, that the driver is loaded, and that the launcher lets this rank see its devices "
        "(CUDA_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES, ZE_AFFINITY_MASK); or set training.device = \"cpu\"",
        name, kind == DeviceKind::cuda ? "CUDA or ROCm" : "XPU");
  }
  const int64_t count = at::accelerator::deviceCount();
  if (local_rank < 0 || (local_rank >= count && count != 1)) {
    throw Failure(
        "local rank {} has no device: this rank sees {} of kind {}. Start at most {} ranks on a node, or let each rank "
        "see "
        "one device",
        local_rank, count, to_string(kind), count);
  }
  const auto index = static_cast<c10::DeviceIndex>(count == 1 ? 0 : local_rank);
  const auto type = kind == DeviceKind::cuda ? c10::DeviceType::CUDA : c10::DeviceType::XPU;
  return Device(kind, at::Device(type, index), accelerator_name(kind, index).value_or(to_string(kind)));
}

void Device::make_current() const {
  if (!is_cpu()) at::accelerator::setDeviceIndex(torch_.index());
}

void Device::synchronize() const {
  if (!is_cpu()) at::accelerator::synchronizeDevice(torch_.index());
}

int64_t Device::allocated_bytes() const {
  if (is_cpu()) return counted_bytes();
  return at::accelerator::getDeviceStats(torch_.index()).allocated_bytes[0].current;
}

int64_t Device::peak_bytes() const {
  if (is_cpu()) return counted_peak_bytes();
  return at::accelerator::getDeviceStats(torch_.index()).allocated_bytes[0].peak;
}

void Device::reset_peak() const {
  if (is_cpu()) {
    reset_counted_peak();
  } else {
    at::accelerator::resetPeakStats(torch_.index());
  }
}

int64_t Device::total_bytes() const {
  if (!is_cpu()) return static_cast<int64_t>(at::accelerator::getMemoryInfo(torch_.index()).second);
  return launch::usable_memory();
}

void Device::empty_cache() const {
  if (!is_cpu()) at::accelerator::emptyCache();
}

void set_threads(int64_t threads) {
  if (threads < 1) throw InputError("training.threads = {}: expected 1 or more", threads);
  at::set_num_threads(static_cast<int>(threads));
}

int64_t threads() { return at::get_num_threads(); }

}  // namespace ridgeline::platform
