#include "optim/gradient_reduction.h"

namespace ridgeline::optim {

GradientReduction::GradientReduction(const nn::FlatParameters& parameters, const mesh::Mesh& mesh,
                                     const spec::Strategy& strategy)
    : parameters_(parameters),
      mesh_(mesh),
      sharded_(strategy.shards_optimizer()),
      started_(parameters.layout().buckets.size(), false) {}

at::Tensor GradientReduction::reduced(const spec::FlatBucket& bucket) const {
  return parameters_.gradients(bucket, sharded_ ? parameters_.shard(bucket) : bucket.range);
}

void GradientReduction::start_data_reduction(size_t index) {
  started_[index] = true;
  if (parameters_.sharding().gradients) return;
  const spec::FlatBucket& bucket = parameters_.layout().buckets[index];
  if (sharded_) {
    works_.push_back(mesh_.holders(bucket.experts).shard.reduce_scatter(reduced(bucket), parameters_.seen_gradients(bucket)));
  } else {
    works_.push_back(mesh_.holders(bucket.experts).all.all_reduce(reduced(bucket)));
  }
}

void GradientReduction::unit_finished(int64_t unit) {
  const auto& buckets = parameters_.layout().buckets;
  for (size_t index = 0; index < buckets.size(); ++index) {
    if (!started_[index] && unit <= buckets[index].first_unit) start_data_reduction(index);
  }
}

template <typename Chosen>
void GradientReduction::reduce_rest(const mesh::Communicator& group, Chosen chosen) {
  if (group.size() == 1) return;
  for (const spec::FlatBucket& bucket : parameters_.layout().buckets) {
    if (chosen(bucket)) works_.push_back(group.all_reduce(reduced(bucket)));
  }
  for (mesh::Work& work : works_) work.wait();
  works_.clear();
}

void GradientReduction::finish() {
  for (size_t index = 0; index < started_.size(); ++index) {
    if (!started_[index]) start_data_reduction(index);
  }
  for (mesh::Work& work : works_) work.wait();
  works_.clear();
  started_.assign(started_.size(), false);
  for (const bool experts : {false, true}) {
    if (!sharded_) break;
    reduce_rest(mesh_.holders(experts).replicas, [=](const spec::FlatBucket& bucket) { return bucket.experts == experts; });
  }
  reduce_rest(mesh_.group(spec::Axis::tensor), [](const spec::FlatBucket& bucket) { return bucket.tensor_partial; });
  reduce_rest(mesh_.tied(), [](const spec::FlatBucket& bucket) { return bucket.tied; });
}

}  // namespace ridgeline::optim
