// NCCL, and RCCL, which ROCm builds of torch put behind the same class. Twin for builds without it: no_nccl.cpp.
#ifdef RIDGELINE_NCCL

#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "mesh/c10d_back_end.h"

namespace ridgeline::mesh {

bool have_nccl() { return true; }

std::shared_ptr<BackEnd> make_nccl(const GroupSetup& setup) {
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = group_timeout(setup);
  options->group_name = setup.name;
  options->group_desc = setup.name;
  options->global_ranks_in_group.assign(setup.members.begin(), setup.members.end());
  auto backend = c10::make_intrusive<c10d::ProcessGroupNCCL>(group_store(setup), static_cast<int>(setup.rank),
                                                             static_cast<int>(setup.members.size()), options);
  return std::make_shared<C10dBackEnd>(std::move(backend), setup.device.torch());
}

}  // namespace ridgeline::mesh

#endif
