// What `ridgeline doctor` wants to know from the half that is linked with libtorch.
#include <torch/version.h>

#include <nlohmann/json.hpp>

#include "cli/engine_commands.h"
#include "cli/print_json.h"
#include "mesh/back_end.h"
#include "platform/accelerators.h"

namespace ridgeline::cli {

int run_doctor() {
  nlohmann::json document = {
      {"torch", TORCH_VERSION}, {"nccl", mesh::have_nccl()}, {"devices", nlohmann::json::array()}};
  for (const platform::Device& device : platform::accelerators()) {
    document["devices"].push_back({{"kind", platform::to_string(device.kind())},
                                   {"name", device.name()},
                                   {"memory_bytes", device.total_bytes()}});
  }
  print_json(document);
  return 0;
}

}  // namespace ridgeline::cli
