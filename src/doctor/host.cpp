#include "doctor/host.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "launch/memory.h"
#include "launch/threads.h"

namespace ridgeline::doctor {
namespace {

std::filesystem::path below(const std::filesystem::path& root, const std::string& path) {
  return root / std::filesystem::path(path).relative_path();
}

int64_t soft_limit(int resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0) return 0;
  return limit.rlim_cur == RLIM_INFINITY ? unlimited : static_cast<int64_t>(limit.rlim_cur);
}

}  // namespace

std::optional<std::string> Host::line(const std::string& path) const {
  std::ifstream stream(below(root, path));
  std::string text;
  if (!std::getline(stream, text)) return std::nullopt;
  return text;
}

bool Host::has(const std::string& path) const {
  std::error_code ignored;
  return std::filesystem::exists(below(root, path), ignored);
}

std::vector<std::string> Host::names(const std::string& folder) const {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(below(root, folder), error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<std::string> Host::program(const std::string& name) const {
  std::istringstream folders(variable("PATH").value_or(""));
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string path = folder + "/" + name;
    if (access(below(root, path).c_str(), X_OK) == 0) return path;
  }
  return std::nullopt;
}

Host this_host() {
  Host host;
  host.variable = [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  };
  host.usable_cores = launch::usable_cores();
  host.memory_bytes = launch::usable_memory();
  struct statvfs shared {};
  if (statvfs("/dev/shm", &shared) == 0) {
    host.shared_memory_bytes = static_cast<int64_t>(shared.f_bavail) * static_cast<int64_t>(shared.f_frsize);
  }
  host.open_files = soft_limit(RLIMIT_NOFILE);
  host.locked_bytes = soft_limit(RLIMIT_MEMLOCK);
  return host;
}

EngineFacts parse_engine_facts(const std::string& text) {
  EngineFacts facts;
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    facts.torch = json.at("torch").get<std::string>();
    facts.has_nccl = json.at("nccl").get<bool>();
    for (const nlohmann::json& device : json.at("devices")) {
      facts.devices.push_back({device.at("kind").get<std::string>(), device.at("name").get<std::string>(),
                               device.at("memory_bytes").get<int64_t>()});
    }
  } catch (const nlohmann::json::exception& error) {
    facts = {};
    facts.fault = fmt::format("ridgeline-engine said something else than expected ({})", error.what());
  }
  return facts;
}

}  // namespace ridgeline::doctor
