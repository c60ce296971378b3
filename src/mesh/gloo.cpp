// Gloo: CPU tensors over TCP, for every build of torch. gloo_stubs/README.md says how it compiles.
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "mesh/c10d_back_end.h"
#include "platform/torch_compat.h"

namespace ridgeline::mesh {

static_assert(sizeof(c10d::ProcessGroupGloo) == platform::gloo_process_group_bytes(),
              "Ridgeline has not been fitted to this version of torch: compare its ProcessGroupGloo.hpp with "
              "src/mesh/gloo_stubs, then enter sizeof(c10d::ProcessGroupGloo) in src/platform/torch_compat.h");

std::shared_ptr<BackEnd> make_gloo(const GroupSetup& setup) {
  auto options = c10d::ProcessGroupGloo::Options::create_default(group_timeout(setup));
  // Within one machine neither its name nor its network need work.
  if (setup.one_machine) options->devices = {c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1")};
  options->group_name = setup.name;
  options->global_ranks_in_group.assign(setup.members.begin(), setup.members.end());
  auto backend = c10::make_intrusive<c10d::ProcessGroupGloo>(group_store(setup), static_cast<int>(setup.rank),
                                                             static_cast<int>(setup.members.size()), options);
  return std::make_shared<C10dBackEnd>(std::move(backend), setup.device.torch());
}

}  // namespace ridgeline::mesh
