// Rotary: the table of cosines and sines of a model's rotary positions, and the rotation of queries and keys by it.
#pragma once

#include <ATen/ATen.h>

#include "spec/model.h"

namespace ridgeline::nn {

class Rotary {
 public:
  // For positions 0 .. model.sequence - 1.
  Rotary(const spec::ModelSpec& model, at::Device device);

  // Rotates in place. x [rows, heads, head size], rows at any distance; positions int64 [rows].
  void forward(const at::Tensor& x, const at::Tensor& positions) const;
  // Makes the gradient of what forward() returned that of what it was given, in place.
  void backward(const at::Tensor& gradient, const at::Tensor& positions) const;

 private:
  at::Tensor cosines_, sines_;  // fp32 [positions, head size / 2]
};

}  // namespace ridgeline::nn
