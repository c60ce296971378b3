// Accelerators: what the machine has, by the nodes and drivers that the kernel shows, against what libtorch can use.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/text.h"
#include "doctor/checks.h"

namespace ridgeline::doctor {
namespace {

struct Vendor {
  const char* name;
  const char* build;  // of torch, that can use it
  int64_t count = 0;  // devices that the kernel shows
  std::string nodes;  // what a user must be allowed to open
};

// nvidia0, nvidia1 ...
int64_t count_numbered(const Host& host, const std::string& folder, const std::string& prefix) {
  const std::vector<std::string> names = host.names(folder);
  return std::count_if(names.begin(), names.end(), [&](const std::string& name) {
    return name.size() > prefix.size() && name.starts_with(prefix) &&
           std::all_of(name.begin() + static_cast<int64_t>(prefix.size()), name.end(),
                       [](char letter) { return letter >= '0' && letter <= '9'; });
  });
}

// KFD lists processors as nodes too: those have no SIMD units.
int64_t count_amd(const Host& host) {
  int64_t count = 0;
  const std::string folder = "/sys/class/kfd/kfd/topology/nodes";
  for (const std::string& node : host.names(folder)) {
    const auto name = host.line(folder + "/" + node + "/gpu_id");
    if (name && *name != "0") ++count;
  }
  return count;
}

std::vector<Vendor> vendors_of(const Host& host) {
  return {{"NVIDIA", "CUDA", count_numbered(host, "/dev", "nvidia"), "/dev/nvidia*"},
          {"AMD", "ROCm", count_amd(host), "/dev/kfd and /dev/dri/renderD* (groups render and video)"},
          {"Intel", "XPU",
           host.has("/sys/module/xe") || host.has("/sys/module/i915") ? count_numbered(host, "/dev/dri", "renderD") : 0,
           "/dev/dri/renderD* (group render)"}};
}

std::string describe(const std::vector<EngineFacts::Device>& devices) {
  std::map<std::string, int64_t> kinds;
  for (const EngineFacts::Device& device : devices) {
    ++kinds[fmt::format("{}, {}", device.name, format_bytes(static_cast<double>(device.memory_bytes)))];
  }
  std::vector<std::string> parts;
  for (const auto& [kind, count] : kinds) parts.push_back(fmt::format("{} x {}", count, kind));
  return join(parts, "; ");
}

}  // namespace

std::vector<Finding> check_devices(const Host& host, const EngineFacts& engine) {
  if (!engine.fault.empty()) return {};
  std::vector<Finding> findings;
  const auto usable = static_cast<int64_t>(engine.devices.size());
  if (usable > 0) findings.push_back({Grade::good, "devices", describe(engine.devices), ""});
  int64_t seen = 0;
  for (const Vendor& vendor : vendors_of(host)) {
    seen += vendor.count;
    if (vendor.count == 0 || usable > 0) continue;
    findings.push_back(
        {Grade::problem, "devices",
         fmt::format("the kernel shows {} {} device{}, libtorch {} sees none", vendor.count, vendor.name,
                     vendor.count == 1 ? "" : "s", engine.torch),
         fmt::format("Check that torch is a {} build, that its version fits the driver, and that you may open {}; "
                     "then build with `scripts/set-up --torch PATH`",
                     vendor.build, vendor.nodes)});
  }
  for (const char* name : {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"}) {
    const auto value = host.variable(name);
    if (value && seen > usable && usable > 0) {
      findings.push_back({Grade::note, "devices",
                          fmt::format("{}={} hides {} of {} devices", name, *value, seen - usable, seen),
                          "Unset it to use all of them, unless the launcher gives each rank its own"});
    }
  }
  if (usable == 0 && seen == 0)
    findings.push_back({Grade::good, "devices", "no accelerator: ranks compute on the CPU", ""});
  return findings;
}

}  // namespace ridgeline::doctor
