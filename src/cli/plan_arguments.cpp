#include "cli/plan_arguments.h"

#include "core/error.h"

namespace ridgeline::cli {

void MachineArguments::add_to(CLI::App& command) {
  command.add_option("--machine", machine, "a shipped machine (frontier, selene, h200 ...) or a machine file")
      ->required();
  command.add_option("--nodes", nodes, "nodes to use")->check(CLI::Range(int64_t{1}, int64_t{1'000'000}));
  command.add_option("--devices", devices, "devices to use, in place of nodes")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}));
  command.add_option("--program", program, "whose way of running a step: ridgeline, megatron, deepspeed, deepspeed-bf16");
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

}  // namespace ridgeline::cli
