#include "cli/plan_arguments.h"

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "spec/foreign_config.h"

namespace ridgeline::cli {

void MachineArguments::add_to(CLI::App& command) {
  command.add_option("--machine", machine, "a shipped machine (frontier, selene, h200 ...) or a machine file")
      ->required();
  command.add_option("--nodes", nodes, "nodes to use")->check(CLI::Range(int64_t{1}, int64_t{1'000'000}));
  command.add_option("--devices", devices, "devices to use, in place of nodes")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}));
  command.add_option("--program", program,
                     "whose way of running a step: ridgeline, megatron, deepspeed, deepspeed-bf16");
}

int64_t MachineArguments::device_count(const spec::Machine& loaded) const {
  if (nodes > 0 && devices > 0) throw InputError("--nodes and --devices were both given; give one of them");
  const int64_t count = devices > 0 ? devices : nodes * loaded.devices_per_node;
  if (loaded.nodes > 0 && count > loaded.nodes * loaded.devices_per_node) {
    throw InputError("{} devices: {} has {} nodes of {} devices; ask for fewer", count, loaded.name, loaded.nodes,
                     loaded.devices_per_node);
  }
  return count;
}

spec::TrainConfig load_any_config(const std::string& path, const std::vector<std::string>& sets) {
  if (path.ends_with(".toml")) return spec::load_train_spec(path, sets);
  if (!sets.empty()) throw InputError("--set {}: only for configs of ours (.toml), not for {}", sets.front(), path);
  const spec::ForeignConfig foreign = spec::read_foreign_config(path);
  if (!foreign.has_model) {
    throw InputError("{}: {} does not say what model it is for; give a file that does", path, foreign.format);
  }
  spec::TrainConfig config;
  config.spec = foreign.spec;
  return config;
}

spec::TrainSpec load_model(const std::string& name) {
  const std::vector<std::string> presets = spec::model_preset_names();
  const bool is_preset = std::find(presets.begin(), presets.end(), name) != presets.end();
  std::error_code ignored;
  if (!is_preset && (name.find('/') != std::string::npos || std::filesystem::is_regular_file(name, ignored))) {
    return load_any_config(name, {}).spec;
  }
  spec::TrainSpec train;
  train.model_preset = name;
  train.model = spec::model_preset(name);
  return train;
}

}  // namespace ridgeline::cli
