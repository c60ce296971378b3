#include "launch/job_key.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

namespace ridgeline::launch {
namespace {

struct Process {
  std::string name;
  int parent = 0;
  std::string start_time;  // in clock ticks since the machine's start
};

// /proc/PID/stat: "PID (NAME) STATE PARENT ... START"; the name may hold spaces and brackets.
Process read_process(int pid) {
  Process process;
  std::ifstream stream(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(stream, line);
  const size_t open = line.find('(');
  const size_t close = line.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return process;
  process.name = line.substr(open + 1, close - open - 1);
  std::istringstream rest(line.substr(close + 1));
  std::string field;
  constexpr int kParent = 4, kStart = 22;  // numbers of the fields, see proc(5)
  for (int number = 3; number <= kStart && rest >> field; ++number) {
    if (number == kParent) process.parent = std::atoi(field.c_str());
    if (number == kStart) process.start_time = field;
  }
  return process;
}

}  // namespace

int port_of_job(const std::string& job) {
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const char character : job) hash = (hash ^ static_cast<unsigned char>(character)) * 1099511628211u;
  hash ^= hash >> 32;
  return 10000 + static_cast<int>(hash % 20000);
}

std::string launching_process(const std::string& name) {
  for (int pid = getppid(); pid > 1;) {
    const Process process = read_process(pid);
    if (process.name == name) return fmt::format("{} at {}", pid, process.start_time);
    pid = process.parent;
  }
  return fmt::format("{} at {}", getppid(), read_process(getppid()).start_time);
}

}  // namespace ridgeline::launch
