#include "optim/gradient_reduction.h"

namespace ridgeline::optim {

GradientReduction::GradientReduction(const nn::FlatParameters& parameters, const mesh::Mesh& mesh, int64_t zero_stage)
    : parameters_(parameters), mesh_(mesh), zero_stage_(zero_stage), started_(parameters.layout().buckets.size(), false) {}

at::Tensor GradientReduction::gradients(const spec::Range& range) const {
  return parameters_.gradients().narrow(0, range.begin, range.size());
}

void GradientReduction::start_data_reduction(size_t bucket) {
  started_[bucket] = true;
  const mesh::Communicator& data = mesh_.group(spec::Axis::data);
  if (data.size() == 1) return;
  const spec::FlatBucket& range = parameters_.layout().buckets[bucket];
  at::Tensor whole = gradients(range.range);
  if (zero_stage_ >= 1) {
    works_.push_back(data.reduce_scatter(gradients(parameters_.layout().owned(range, data.rank())), whole));
  } else {
    works_.push_back(data.all_reduce(whole));
  }
}

void GradientReduction::unit_finished(int64_t unit) {
  const auto& buckets = parameters_.layout().buckets;
  for (size_t index = 0; index < buckets.size(); ++index) {
    const spec::FlatBucket& bucket = buckets[index];
    if (!started_[index] && !bucket.tensor_partial && !bucket.tied && unit <= bucket.first_unit) start_data_reduction(index);
  }
}

void GradientReduction::finish() {
  const auto& buckets = parameters_.layout().buckets;
  std::vector<mesh::Work> works;
  for (const spec::FlatBucket& bucket : buckets) {
    if (bucket.tensor_partial) works.push_back(mesh_.group(spec::Axis::tensor).all_reduce(gradients(bucket.range)));
  }
  for (mesh::Work& work : works) work.wait();
  works.clear();
  for (const spec::FlatBucket& bucket : buckets) {
    if (bucket.tied) works.push_back(mesh_.tied().all_reduce(gradients(bucket.range)));
  }
  for (mesh::Work& work : works) work.wait();
  for (size_t index = 0; index < buckets.size(); ++index) {
    if (!started_[index]) start_data_reduction(index);
  }
  for (mesh::Work& work : works_) work.wait();
  works_.clear();
  started_.assign(started_.size(), false);
}

}  // namespace ridgeline::optim
