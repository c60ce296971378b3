#include "cli/plan_arguments.h"

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "core/log.h"
#include "spec/foreign_config.h"

namespace ridgeline::cli {
namespace {

bool is_set(const std::vector<std::string>& sets, const std::string& key) {
  return std::any_of(sets.begin(), sets.end(), [&](const std::string& set) { return set.starts_with(key + "="); });
}

AnyConfig foreign_config(const std::string& path, const std::vector<std::string>& sets) {
  const spec::ForeignConfig foreign = spec::read_foreign_config(path);
  if (!foreign.has_model) {
    throw InputError("{}: {} does not say what model it is for; give a file that does", path, foreign.format);
  }
  for (const spec::ForeignSetting& setting : foreign.beyond) {
    spdlog::warn("{}: {}{}{}: not in the prediction: {}", setting.where, setting.name,
                 setting.value.empty() ? "" : " = ", setting.value, setting.meaning);
  }
  AnyConfig config;
  config.devices = foreign.devices;
  for (const std::string& line : foreign.missing) {
    if (!is_set(sets, line.substr(0, line.find(':')))) config.missing.push_back(line);
  }
  config.train.spec = foreign.spec;
  Schema schema;
  spec::bind(schema, config.train.spec);
  for (const std::string& assignment : sets) schema.set(assignment);
  schema.apply();
  config.train.sources = schema.sources();
  config.train.sources.located([&] { spec::validate(config.train.spec); });
  return config;
}

}  // namespace

void MachineArguments::add_to(CLI::App& command) {
  command.add_option("--machine", machine, "a shipped machine (frontier, selene, h200 ...) or a machine file")
      ->required();
  command.add_option("--nodes", nodes, "nodes to use")->check(CLI::Range(int64_t{1}, int64_t{1'000'000}));
  command.add_option("--devices", devices, "devices to use, in place of nodes")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}));
  command.add_option("--program", program,
                     "whose way of running a step: ridgeline, megatron, megatron-core, nemo, deepspeed, deepspeed-bf16");
}

spec::Machine MachineArguments::load() const {
  const spec::Machine loaded = spec::load_machine(machine);
  if (loaded.purpose == spec::Purpose::curve_fit) {
    spdlog::warn(
        "machine {} is a curve fit of recorded runs ({}): its constants fit those together and are no measurements; for "
        "other models and strategies the prediction may be far off",
        loaded.name, loaded.stack.name);
  }
  return loaded;
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

AnyConfig load_any_config(const std::string& path, const std::vector<std::string>& sets) {
  if (spec::is_foreign_config(path)) return foreign_config(path, sets);
  AnyConfig config;
  config.train = spec::load_train_spec(path, sets);
  return config;
}

spec::TrainSpec load_model(const std::string& name) {
  const std::vector<std::string> presets = spec::model_preset_names();
  const bool is_preset = std::find(presets.begin(), presets.end(), name) != presets.end();
  std::error_code ignored;
  if (!is_preset && (name.find('/') != std::string::npos || std::filesystem::is_regular_file(name, ignored))) {
    return load_any_config(name, {}).train.spec;
  }
  spec::TrainSpec train;
  train.model_preset = name;
  train.model = spec::model_preset(name);
  train.precision.compute = spec::Precision::bf16;
  return train;
}

}  // namespace ridgeline::cli
