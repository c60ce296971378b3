// The legal strategies of a model on a number of devices. Sizes are proposed by divisor chains (tensor divides the
// devices, context and pipeline what is left of them, data is the rest, micro-batches divide a replica's share of the
// batch), and
// spec::is_legal is asked of each proposal, so that the rules of derive_data are written once.
//
// Beside these: sequence parallelism, recomputation, ZeRO 0 to 3 where there are replicas, all schedules, and
// interleaving, and for models with experts the ranks that these lie on, cut over the tensor axis or whole.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "spec/model.h"
#include "spec/strategy.h"

namespace ridgeline::search {

struct Space {
  int64_t devices = 1;
  int64_t global_batch = 1;
  int64_t most_tensor = 64;
  int64_t most_context = 1;
  int64_t most_chunks = 8;  // virtual_pipeline
  int64_t most_micro_batch = 64;
};

// One way to cut the devices, which is the outer loop: work is shared between threads by it.
struct Cut {
  int64_t tensor = 1, pipeline = 1, data = 1, context = 1;
  spec::ContextKind context_kind = spec::ContextKind::ring;
};
std::vector<Cut> cuts(const Space& space, const spec::ModelSpec& model);

// Every legal plan of a cut, in a fixed order.
void for_each_plan(const Space& space, const spec::ModelSpec& model, const Cut& cut,
                   const std::function<void(const spec::Strategy&)>& visit);

}  // namespace ridgeline::search
