// What `project` is asked, and how it is read: from recorded runs or from a config, with a machine or without.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "project/projection.h"
#include "spec/machine.h"

namespace ridgeline::cli {

struct ProjectArguments {
  std::vector<std::string> inputs;  // run folders, metrics.jsonl files, or one config
  std::vector<std::string> sets;
  std::string machine;
  std::string program = "ridgeline";
  int64_t nodes = 0;
  int64_t devices = 0;
  std::string tokens;
  std::string ramp;
  std::string deadline;
  bool surely = false;
  double budget = 0;  // node-hours
  double price = -1;
  double node_mtbf = 0;
  bool no_failures = false;
  std::string start, restart, save, save_every, walltime, queue_wait;
  int64_t spare_nodes = 0;
  int64_t plays = 2000;
  uint64_t seed = 1;
  bool wants_json = false;

  void add_to(CLI::App& command);
};

struct ProjectQuestion {
  project::StepModel steps;
  project::Conditions conditions;
  std::optional<spec::Machine> machine;
  bool tokens_are_optimal = false;  // none were given
  std::string of;                   // "2 runs of 64 devices", "run.toml"
};

// Throws InputError for what is wrong or missing.
ProjectQuestion question_of(const ProjectArguments& arguments);

}  // namespace ridgeline::cli
