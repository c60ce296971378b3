// Rotation of channel pairs of heads, in place: channel i of a head's first half with channel i of its second half, by
// the angle whose cosine and sine a table holds for the row's position (spec/rotary.h says which angles).
//
//   (a, b) -> (a cos - b sin, b cos + a sin);   back: the transpose, which is the gradient's way
//
// Arithmetic is fp32; one pass on CPU.
#pragma once

#include <ATen/core/Tensor.h>

namespace ridgeline::nn {

// x [rows, heads, size] with dense heads, rows at any distance; cosines and sines fp32 [positions, size / 2], dense;
// positions int64 [rows], below the table's number of rows.
void rotate(const at::Tensor& x, const at::Tensor& cosines, const at::Tensor& sines, const at::Tensor& positions,
            bool back);

// The same by plain tensor operations, on any device.
namespace plain {
void rotate(const at::Tensor& x, const at::Tensor& cosines, const at::Tensor& sines, const at::Tensor& positions,
            bool back);
}  // namespace plain

}  // namespace ridgeline::nn
