#include "platform/device_name.h"

#include <dlfcn.h>
#include <sys/utsname.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <vector>

namespace ridgeline::platform {
namespace {

// The libraries stay loaded: torch uses the same ones until the process ends.
template <typename Function>
Function* symbol(void* library, const char* name) {
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(library, name));
}

// NVIDIA's and AMD's calls have the same shape: initialize, then fill a buffer with the name of a device by index. The
// index is among the visible devices, as torch counts them.
std::optional<std::string> name_by_index(const char* library_name, const char* initialize_name, const char* name_name,
                                         int index) {
  void* library = dlopen(library_name, RTLD_NOW);
  auto* initialize = symbol<int(unsigned)>(library, initialize_name);
  auto* get_name = symbol<int(char*, int, int)>(library, name_name);
  if (initialize == nullptr || get_name == nullptr || initialize(0) != 0) return std::nullopt;
  std::array<char, 256> name{};
  if (get_name(name.data(), static_cast<int>(name.size()) - 1, index) != 0 || name[0] == '\0') return std::nullopt;
  return std::string(name.data());
}

// ze_device_properties_t of Level Zero 1.x, whose layout its specification fixes.
struct LevelZeroDeviceProperties {
  uint32_t structure_type = 3;  // ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES
  void* next = nullptr;
  uint32_t type = 0;
  uint32_t vendor = 0;
  uint32_t device = 0;
  uint32_t flags = 0;
  uint32_t subdevice = 0;
  uint32_t core_clock_rate = 0;
  uint64_t largest_allocation = 0;
  uint32_t contexts = 0;
  uint32_t queue_priority = 0;
  uint32_t threads_per_unit = 0;
  uint32_t simd_width = 0;
  uint32_t units_per_subslice = 0;
  uint32_t subslices_per_slice = 0;
  uint32_t slices = 0;
  uint64_t timer_resolution = 0;
  uint32_t timestamp_bits = 0;
  uint32_t kernel_timestamp_bits = 0;
  std::array<uint8_t, 16> uuid{};
  std::array<char, 256> name{};
};
static_assert(sizeof(LevelZeroDeviceProperties) == 368);

constexpr const char* max_1550 = "Intel(R) Data Center GPU Max 1550";
// Subslices ("Xe cores") of a Max 1550: 64 in each tile.
constexpr uint32_t max_1550_tile_subslices = 64;

std::optional<std::string> level_zero_name(int index) {
  void* library = dlopen("libze_loader.so.1", RTLD_NOW);
  auto* initialize = symbol<int(uint32_t)>(library, "zeInit");
  auto* get_drivers = symbol<int(uint32_t*, void**)>(library, "zeDriverGet");
  auto* get_devices = symbol<int(void*, uint32_t*, void**)>(library, "zeDeviceGet");
  auto* get_properties = symbol<int(void*, LevelZeroDeviceProperties*)>(library, "zeDeviceGetProperties");
  if (!initialize || !get_drivers || !get_devices || !get_properties || initialize(0) != 0) return std::nullopt;
  void* driver = nullptr;
  uint32_t drivers = 1;
  uint32_t devices = 0;
  if (get_drivers(&drivers, &driver) != 0 || drivers < 1) return std::nullopt;
  if (get_devices(driver, &devices, nullptr) != 0 || index < 0 || static_cast<uint32_t>(index) >= devices) {
    return std::nullopt;
  }
  std::vector<void*> handles(devices);
  LevelZeroDeviceProperties properties;
  if (get_devices(driver, &devices, handles.data()) != 0) return std::nullopt;
  if (get_properties(handles[static_cast<std::size_t>(index)], &properties) != 0) return std::nullopt;
  properties.name.back() = '\0';
  std::string name = properties.name.data();
  if (name == max_1550 && properties.slices * properties.subslices_per_slice == max_1550_tile_subslices) {
    name += " (tile)";
  }
  if (name.empty()) return std::nullopt;
  return name;
}

}  // namespace

std::optional<std::string> accelerator_name(DeviceKind kind, int index) {
  switch (kind) {
    case DeviceKind::cpu:
      return std::nullopt;
    case DeviceKind::xpu:
      return level_zero_name(index);
    case DeviceKind::cuda:
      break;
  }
  if (auto name = name_by_index("libcuda.so.1", "cuInit", "cuDeviceGetName", index)) return name;
  for (const char* library : {"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6"}) {
    if (auto name = name_by_index(library, "hipInit", "hipDeviceGetName", index)) return name;
  }
  return std::nullopt;
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    const auto colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
  }
  utsname machine{};
  return uname(&machine) == 0 ? machine.machine : "cpu";
}

}  // namespace ridgeline::platform
