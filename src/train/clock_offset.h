// How far the clocks of ranks on other machines are from rank 0's, so that what was recorded on many ranks lies on one
// time line. A rank of each other machine exchanges a few small messages with rank 0; of these the quickest counts:
// rank 0 read its clock between sending and receiving there (Cristian's algorithm). Ranks on one machine share a clock.
#pragma once

#include <functional>
#include <string>

#include "mesh/mesh.h"

namespace ridgeline::train {

struct ClockOffset {
  double seconds = 0;      // to add to this rank's clock to have rank 0's
  double uncertainty = 0;  // the true one is at most this far off
};

// Equal on processes that share one steady clock: those of one start of one machine.
std::string clock_identity();

// `now`: seconds of this rank's clock. Collective.
ClockOffset clock_offset(const mesh::Mesh& mesh, const std::string& identity, const std::function<double()>& now);

}  // namespace ridgeline::train
