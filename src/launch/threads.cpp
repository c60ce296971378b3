#include "launch/threads.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

namespace ridgeline::launch {
namespace {

std::string read_text(const std::string& path) {
  std::ifstream stream(path);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

int affinity_cores() {
  // The kernel refuses masks smaller than its own, whose size no constant tells.
  for (size_t cores = 1024; cores <= (size_t{1} << 20); cores *= 2) {
    const size_t bytes = CPU_ALLOC_SIZE(cores);
    std::vector<unsigned long> mask(bytes / sizeof(unsigned long));
    auto* set = reinterpret_cast<cpu_set_t*>(mask.data());
    if (sched_getaffinity(0, bytes, set) == 0) return CPU_COUNT_S(bytes, set);
  }
  return static_cast<int>(std::thread::hardware_concurrency());
}

double smaller(double quota, double other) {
  if (other <= 0) return quota;
  return quota <= 0 ? other : std::min(quota, other);
}

// "max 100000" or "150000 100000"
double version_2_quota(const std::string& folder) {
  std::istringstream text(read_text(folder + "/cpu.max"));
  double quota = 0, period = 0;
  return text >> quota >> period && quota > 0 && period > 0 ? quota / period : 0;
}

double version_1_quota(const std::string& folder) {
  std::istringstream quota_text(read_text(folder + "/cpu.cfs_quota_us"));
  std::istringstream period_text(read_text(folder + "/cpu.cfs_period_us"));
  double quota = 0, period = 0;
  return quota_text >> quota && period_text >> period && quota > 0 && period > 0 ? quota / period : 0;
}

// A quota of any ancestor binds too. In a container the path may lie outside of what is mounted: its root still counts.
template <typename Quota>
double smallest_quota(const std::string& mount, std::string path, Quota quota_of) {
  double quota = quota_of(mount);
  while (path.size() > 1) {
    quota = smaller(quota, quota_of(mount + path));
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
  return quota;
}

}  // namespace

double cgroup_quota(const std::string& root, const std::string& membership) {
  double quota = 0;
  std::istringstream lines(membership);
  std::string line;
  while (std::getline(lines, line)) {  // "0::/path" or "4:cpu,cpuacct:/path"
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    const std::string path = line.substr(second + 1);
    if (controllers == ",,") quota = smaller(quota, smallest_quota(root, path, version_2_quota));
    if (controllers.find(",cpu,") != std::string::npos) {
      quota = smaller(quota, smallest_quota(root + "/cpu", path, version_1_quota));
    }
  }
  return quota;
}

int usable_cores() {
  const double quota = cgroup_quota("/sys/fs/cgroup", read_text("/proc/self/cgroup"));
  const int cores = affinity_cores();
  const int allowed = quota > 0 && quota < cores ? static_cast<int>(std::ceil(quota)) : cores;
  return std::max(1, allowed);
}

int threads_per_rank(const RankEnvironment& environment) {
  const int sharers = environment.cores_are_own ? 1 : std::max(1, environment.local_world);
  return std::max(1, usable_cores() / sharers);
}

}  // namespace ridgeline::launch
