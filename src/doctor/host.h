// Host: what the checks may ask of a machine. Files are read below `root`, so that tests can describe machines that
// they do not run on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "launch/environment.h"

namespace ridgeline::doctor {

inline constexpr int64_t unlimited = INT64_MAX;

struct Host {
  std::filesystem::path root = "/";
  launch::Variables variable;  // of the environment
  int64_t usable_cores = 1;
  int64_t memory_bytes = 0;         // what this process may use: the machine's, or less in a container
  int64_t shared_memory_bytes = 0;  // free in /dev/shm; 0: there is none
  int64_t open_files = 0;           // soft limits
  int64_t locked_bytes = 0;

  // First line of a file below root, without its end; nothing where it cannot be read.
  std::optional<std::string> line(const std::string& path) const;
  bool has(const std::string& path) const;
  // Names in a folder below root, sorted; none where there is no such folder.
  std::vector<std::string> names(const std::string& folder) const;
  // Path of a program in PATH below root.
  std::optional<std::string> program(const std::string& name) const;
};

// The machine that this process runs on.
Host this_host();

// What the part of Ridgeline with libtorch found: `ridgeline-engine doctor` prints it.
struct EngineFacts {
  struct Device {
    std::string kind;  // cuda, xpu
    std::string name;
    int64_t memory_bytes = 0;
  };
  std::string fault;  // why it could not be asked; the rest is empty then
  std::string torch;  // version, such as "2.13.0+cpu"
  std::vector<Device> devices;
  bool has_nccl = false;  // or RCCL
};

// Of the engine's JSON; `fault` is set where it is not what was expected.
EngineFacts parse_engine_facts(const std::string& json);

}  // namespace ridgeline::doctor
