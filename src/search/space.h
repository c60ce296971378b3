// The legal strategies of a model on a number of devices, by divisor chains: tensor divides the heads and the devices,
// pipeline what is left of the devices, data is the rest and divides the global batch, micro-batches divide a replica's
// share. Nothing is proposed and thrown away.
//
// Beside these: sequence parallelism, recomputation, ZeRO 0, 1 and (without stages) 3, both schedules, and interleaving
// where the layers divide into chunks and the micro-batches into the stages.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "simulate/prediction.h"
#include "spec/model.h"

namespace ridgeline::search {

struct Space {
  int64_t devices = 1;
  int64_t global_batch = 1;
  int64_t most_tensor = 64;
  int64_t most_chunks = 8;  // virtual_pipeline; 1: no interleaving
  int64_t most_micro_batch = 64;
  bool shards_parameters = true;  // ZeRO-3 among the plans
};

// One way to cut the devices, which is the outer loop: work is shared between threads by it.
struct Cut {
  int64_t tensor = 1, pipeline = 1, data = 1;
};
std::vector<Cut> cuts(const Space& space, const spec::ModelSpec& model);

// Every legal plan of a cut, in a fixed order.
void for_each_plan(const Space& space, const spec::ModelSpec& model, const Cut& cut,
                   const std::function<void(const spec::Strategy&)>& visit);

std::vector<int64_t> divisors(int64_t number);  // ascending

}  // namespace ridgeline::search
