// What rank 0 of the tensor axis holds, which is the largest share: the sizes that kernels, messages and memory are
// counted with. All of it follows from the boxes of the declared parameters (spec/parameters.h): no rule of the layout is
// written here.
#pragma once

#include <cstdint>

#include "spec/model.h"
#include "spec/strategy.h"

namespace ridgeline::cost {

struct LocalShares {
  // Elements of the parameters.
  double embedding = 0;
  double layer = 0;
  double head = 0;
  double tied = 0;     // that embedding and head share: a copy of its own where the head is on another stage
  double largest = 0;  // of a single parameter
  double experts = 0;  // of `layer`, what is an expert's

  // Rows or columns of matrices.
  int64_t query_width = 0;  // channels of the queries; of keys, and of values
  int64_t key_width = 0;
  int64_t mlp_width = 0;  // of the dense MLP, of one expert, of the shared experts; 0 where the model has none
  int64_t expert_width = 0;
  int64_t shared_width = 0;
  int64_t vocabulary = 0;

  // Rows of the residual stream of a micro-batch (spec::residual_placement).
  static int64_t stream_rows(const spec::ModelSpec& model, const spec::Strategy& strategy);
};

LocalShares local_shares(const spec::ModelSpec& model, int64_t tensor);
// Of its strategy: tensor, expert and expert_tensor.
LocalShares local_shares(const spec::ModelSpec& model, const spec::Strategy& strategy);

}  // namespace ridgeline::cost
