#include "nn/redistribute.h"

#include "core/error.h"

namespace ridgeline::nn {
namespace {

at::Tensor with_rows(const at::Tensor& like, int64_t rows) {
  std::vector<int64_t> shape = like.sizes().vec();
  shape[0] = rows;
  return at::empty(shape, like.options());
}

}  // namespace

at::Tensor Redistribution::wait() {
  work_.wait();
  return result_;
}

Redistribution start_redistribute(const at::Tensor& source, const spec::Placement& from, const spec::Placement& to,
                                  const mesh::Communicator& axis) {
  if (axis.size() == 1 || from == to) return {source, {}};
  const spec::Placement rows = spec::Placement::shard(0);
  if (from.is_partial() && to.is_replicate()) return {source, axis.all_reduce(source)};
  if (from.is_partial() && to == rows) {
    RIDGELINE_ASSERT(source.size(0) % axis.size() == 0);
    at::Tensor part = with_rows(source, source.size(0) / axis.size());
    return {part, axis.reduce_scatter(part, source)};
  }
  if (from == rows && to.is_replicate()) {
    at::Tensor whole = with_rows(source, source.size(0) * axis.size());
    return {whole, axis.all_gather(whole, source)};
  }
  if (from.is_replicate() && to == rows) {
    const spec::Range range = spec::split_range(source.size(0), axis.size(), axis.rank());
    return {source.narrow(0, range.begin, range.size()), {}};
  }
  throw InternalError("no redistribution from {} to {}", to_string(from), to_string(to));
}

}  // namespace ridgeline::nn
