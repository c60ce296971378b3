// What backward needs of one micro-batch's forward, as a declared table for each unit: name, shape, element type,
// placement on the tensor axis, and the strongest recomputation under which it is still kept. The trainer's memory
// report, the planner and the tests share it; nn's saved records visit their tensors under the same names in the same
// order.
//
// Rows are the tokens of the micro-batch that a rank of the context axis holds, sample after sample. Not listed: the
// tokens and targets themselves (they belong to the micro-batch), dropout masks (they are counters, never stored), and
// a few bytes of device kernels' random state. Experts are counted with routing that is even and drops nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "spec/model.h"
#include "spec/placement.h"
#include "spec/strategy.h"
#include "spec/train.h"

namespace ridgeline::cost {

enum class Element { compute, fp32, int64 };

int64_t element_bytes(Element element, spec::Precision compute);

struct SavedTensor {
  std::string part;            // "attention" or "mlp" in a layer, "embedding", "head"
  std::string name;            // unique within its part
  std::vector<int64_t> shape;  // of one micro-batch, over the whole tensor axis
  Element element;
  spec::Placement placement;  // on the tensor axis
  spec::Recompute
      kept_through;  // kept under this recomputation and weaker ones, rebuilt in backward under stronger ones
};

// Everything that `unit` can keep.
std::vector<SavedTensor> saved_tensors(const spec::ModelSpec& model, const spec::Strategy& strategy, int64_t unit);

// What `unit` keeps from the backward for its input to that for its weights, where a schedule splits the backward:
// input and output gradient of each of its linear layers. With sequence parallelism both are gathered.
std::vector<SavedTensor> deferred_tensors(const spec::ModelSpec& model, const spec::Strategy& strategy, int64_t unit);

bool is_kept(const SavedTensor& tensor, spec::Recompute recompute);

// On the device at `tensor_rank`.
int64_t local_bytes(const SavedTensor& tensor, const spec::Strategy& strategy, spec::Precision compute,
                    int64_t tensor_rank);

}  // namespace ridgeline::cost
