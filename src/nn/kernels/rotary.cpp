#include "nn/kernels/rotary.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "nn/kernels/tensor_access.h"

#define RIDGELINE_TARGET_FILE "nn/kernels/rotary_loops.inl"
#include "core/for_each_target.h"

namespace ridgeline::nn {
namespace {

void check(const at::Tensor& x, const at::Tensor& cosines, const at::Tensor& sines, const at::Tensor& positions) {
  RIDGELINE_ASSERT(x.dim() == 3 && x.size(2) % 2 == 0 && x.stride(2) == 1 && x.stride(1) == x.size(2));
  check_dense(cosines, "rotate: cosines");
  RIDGELINE_ASSERT(cosines.dim() == 2 && cosines.size(1) == x.size(2) / 2 && cosines.scalar_type() == at::kFloat);
  check_like(sines, cosines, "rotate: sines");
  check_vector(positions, x.size(0), at::kLong, "rotate: positions");
}

}  // namespace

void rotate(const at::Tensor& x, const at::Tensor& cosines, const at::Tensor& sines, const at::Tensor& positions,
            bool back) {
  if (!x.is_cpu()) return plain::rotate(x, cosines, sines, positions, back);
  check(x, cosines, sines, positions);
  const int64_t heads = x.size(1), half = x.size(2) / 2, stride = x.stride(0);
  const int64_t* position = positions.data_ptr<int64_t>();
  with_format(x.scalar_type(), [&](auto format) {
    using Format = decltype(format);
    const auto loop = RIDGELINE_PICK(rotate_rows<Format>);
    at::parallel_for(0, x.size(0), rows_per_task(heads * 2 * half), [&](int64_t begin, int64_t end) {
      loop(stored<Format>(x) + begin * stride, stride, floats(cosines), floats(sines), position + begin, end - begin,
           heads, half, back ? -1.0f : 1.0f);
    });
  });
}

void plain::rotate(const at::Tensor& x, const at::Tensor& cosines, const at::Tensor& sines,
                   const at::Tensor& positions, bool back) {
  check(x, cosines, sines, positions);
  const int64_t half = x.size(2) / 2;
  const at::Tensor c = cosines.index_select(0, positions).unsqueeze(1);
  at::Tensor s = sines.index_select(0, positions).unsqueeze(1);
  if (back) s = s.neg();
  const at::Tensor first = x.narrow(2, 0, half), second = x.narrow(2, half, half);
  const at::Tensor a = first.to(at::kFloat), b = second.to(at::kFloat);
  const at::Tensor turned_first = a * c - b * s, turned_second = b * c + a * s;
  first.copy_(turned_first);
  second.copy_(turned_second);
}

}  // namespace ridgeline::nn
