#include "launch/memory.h"

#include <sys/sysinfo.h>

#include <algorithm>
#include <fstream>
#include <limits>

#include "core/error.h"

namespace ridgeline::launch {
namespace {

int64_t container_limit() {
  std::ifstream file("/sys/fs/cgroup/memory.max");
  int64_t bytes = 0;
  return file >> bytes && bytes > 0 ? bytes : std::numeric_limits<int64_t>::max();  // "max" is no number
}

}  // namespace

int64_t usable_memory() {
  struct sysinfo machine {};
  if (sysinfo(&machine) != 0) throw Failure("sysinfo() does not tell this machine's memory");
  return std::min(static_cast<int64_t>(machine.totalram) * machine.mem_unit, container_limit());
}

}  // namespace ridgeline::launch
