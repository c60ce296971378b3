// Context: what every piece of a model knows of its surroundings. Lives as long as the stage.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "mesh/communicator.h"
#include "spec/model.h"
#include "spec/parameters.h"
#include "spec/strategy.h"

namespace ridgeline::nn {

struct Context {
  spec::ModelSpec model;
  spec::Strategy strategy;
  spec::Placement residual;         // of the residual stream on the tensor axis
  const mesh::Communicator* tensor;       // the tensor axis; size one where there is none
  uint64_t seed = 0;                // of dropout
  at::ScalarType compute = at::kFloat;
  at::Device device = at::kCPU;
  const mesh::Communicator* context_axis = nullptr;  // ranks that share each sequence; null: this one has all of it
  const mesh::Communicator* expert = nullptr;  // the ranks that experts lie on; null where there is one
  // What this rank's routers add to the loss, in the unit of the sum of token losses (double, one element): backwards add
  // their micro-batch's part. Undefined: nobody asks.
  at::Tensor auxiliary_loss = {};

  // Rows of the residual stream that this rank holds, of `rows` in all.
  spec::Range local_rows(int64_t rows) const {
    const spec::Box box = spec::local_box({rows}, residual, tensor->size(), tensor->rank());
    return {box.offset[0], box.offset[0] + box.extent[0]};
  }
};

}  // namespace ridgeline::nn
