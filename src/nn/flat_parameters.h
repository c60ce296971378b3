// FlatParameters: the storage of a pipeline stage's parameters and main gradients.
//
// Values lie in one flat buffer in the compute precision, main gradients in one in fp32 at the same offsets
// (spec/flat_layout.h); what pieces see are views. Gradients are added to over the micro-batches of a step and zeroed after
// the update.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "spec/flat_layout.h"
#include "spec/parameters.h"

namespace ridgeline::nn {

// Views of one parameter, shaped as this rank's box of it. What a piece must know of its share of a layer (which heads, which
// part of the vocabulary) it reads from the box, which follows from the declared placement.
struct Parameter {
  at::Tensor value;     // compute precision
  at::Tensor gradient;  // fp32
  spec::Box box = {};   // of the global tensor

  // The part of dim `dim` of the global tensor that this rank holds.
  spec::Range held(int64_t dim) const { return {box.offset[dim], box.offset[dim] + box.extent[dim]}; }
};

class FlatParameters {
 public:
  FlatParameters(std::vector<spec::ParameterSpec> declared, spec::FlatLayout layout, at::ScalarType compute,
                 at::Device device);

  const spec::FlatLayout& layout() const { return layout_; }
  const std::vector<spec::ParameterSpec>& declared() const { return declared_; }
  const spec::ParameterSpec& declared(const spec::FlatEntry& entry) const { return declared_[entry.parameter]; }

  // Views of the parameter called `name`; InternalError where this stage does not hold it.
  Parameter parameter(const std::string& name) const;
  // The same, with undefined tensors where the model declares no such parameter.
  Parameter parameter_if_declared(const std::string& name) const;

  at::Tensor values() const { return values_; }
  at::Tensor gradients() const { return gradients_; }

  // Draws the initial value of every parameter from its own named stream, so that it is the same in every layout and on
  // every device, and hands each one in fp32 on the CPU to `sink` (which keeps masters) before it is rounded.
  void initialise(uint64_t seed, const std::function<void(const spec::FlatEntry&, const at::Tensor&)>& sink);

 private:
  std::vector<spec::ParameterSpec> declared_;
  spec::FlatLayout layout_;
  std::unordered_map<std::string, size_t> entry_of_;
  at::Tensor values_;
  at::Tensor gradients_;
};

}  // namespace ridgeline::nn
