// What `plan` and `simulate` share: which machine, how much of it, whose way of running a step, and configs of any kind.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

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
  // The machine; where its constants are a fit of recorded runs alone, a warning on stderr says so.
  spec::Machine load() const;
  // Devices asked for; 0 where neither --nodes nor --devices was given. Throws InputError where both were.
  int64_t device_count(const spec::Machine& loaded) const;
  cost::Recipe recipe() const { return cost::recipe(program); }
};

struct AnyConfig {
  spec::TrainConfig train;
  int64_t devices = 0;               // that another program's file is made for; 0: it does not say
  std::vector<std::string> missing;  // "strategy.global_batch: ...": what the file leaves open
};

// A config file of ours, or one of another program (spec/foreign_config.h). Settings of that which a prediction leaves
// out are warned of on stderr. `sets` win over both.
AnyConfig load_any_config(const std::string& path, const std::vector<std::string>& sets);

// A preset's name, or the path of a file that load_any_config reads (holds a '/', or is a file). A preset says nothing
// of precision: it is planned in bf16.
spec::TrainSpec load_model(const std::string& name);

}  // namespace ridgeline::cli
