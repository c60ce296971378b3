// What `plan` and `simulate` share: which machine, how much of it, and whose way of running a step.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "cost/recipe.h"
#include "spec/config.h"
#include "spec/machine.h"

namespace ridgeline::cli {

struct MachineArguments {
  std::string machine;
  int64_t nodes = 0;
  int64_t devices = 0;
  std::string program = "ridgeline";

  void add_to(CLI::App& command);
  // Devices asked for; 0 where neither --nodes nor --devices was given. Throws InputError where both were.
  int64_t device_count(const spec::Machine& loaded) const;
  cost::Recipe recipe() const { return cost::recipe(program); }
};

// A config file of ours (.toml), or one of another program (spec/foreign_config.h).
spec::TrainConfig load_any_config(const std::string& path, const std::vector<std::string>& sets);

// A preset's name, or the path of a file that load_any_config reads (holds a '/' or a '.' before its ending).
spec::TrainSpec load_model(const std::string& name);

}  // namespace ridgeline::cli
