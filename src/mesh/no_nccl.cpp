// Builds without the headers of NCCL or RCCL; twin of nccl.cpp.
#ifndef RIDGELINE_NCCL

#include "core/error.h"
#include "mesh/back_end.h"

namespace ridgeline::mesh {

bool have_nccl() { return false; }

std::shared_ptr<BackEnd> make_nccl(const GroupSetup& setup) {
  throw Failure(
      "group \"{}\" of {} ranks on {} needs NCCL or RCCL, which this build of Ridgeline is without: its headers were "
      "not "
      "found when it was configured. Install them (see cmake/Nccl.cmake) and build again, or train on one device or "
      "cpu",
      setup.name, setup.members.size(), setup.device.name());
}

}  // namespace ridgeline::mesh

#endif
