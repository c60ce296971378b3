#include "optim/optimizer.h"

#include <algorithm>

#include "optim/gradient_norm.h"

namespace ridgeline::optim {

Optimizer::Optimizer(nn::FlatParameters& parameters, const mesh::Mesh& mesh, const spec::Strategy& strategy,
                     const spec::OptimizerSpec& settings, const Balance& balance)
    : parameters_(parameters),
      mesh_(mesh),
      settings_(settings),
      balance_(balance),
      sharded_(strategy.shards_optimizer()),
      own_masters_(strategy.offload_optimizer || parameters.kept_values().scalar_type() != at::kFloat) {
  const spec::FlatLayout& layout = parameters.layout();
  int64_t elements = 0, most = 0;
  for (size_t bucket = 0; bucket < layout.buckets.size(); ++bucket) {
    const spec::Range flat = sharded_ ? share(bucket) : layout.buckets[bucket].range;
    owned_.push_back({flat, elements, {}, {}});
    elements += flat.size();
    most = std::max(most, flat.size());
  }
  for (const spec::FlatEntry& entry : layout.entries) {
    Owned& owned = owned_[entry.bucket];
    const spec::Range range = spec::intersection(entry.range, owned.flat);
    if (range.size() == 0) continue;
    const int64_t begin = range.begin - owned.flat.begin, end = range.end - owned.flat.begin;
    const spec::ParameterSpec& declared = parameters.declared(entry);
    if (declared.update == spec::Update::balance) {
      owned.balance.push_back({begin, end});
    } else {
      owned.ranges.push_back({begin, end, declared.decay});
    }
  }
  auto options = parameters.kept_gradients().options();
  if (strategy.offload_optimizer) {
    staging_ = std::make_unique<HostStaging>(options.device(), parameters.kept_values().scalar_type(), most);
    options = host_options(options.device(), at::kFloat);
  }
  if (own_masters_) masters_ = at::zeros({elements}, options);
  first_moment_ = at::zeros({elements}, options);
  second_moment_ = at::zeros({elements}, options);
}

spec::Range Optimizer::share(size_t bucket) const {
  const spec::FlatBucket& of = this->bucket(bucket);
  return parameters_.layout().owned(of, mesh_.holders(of.experts).shard.rank());
}

at::Tensor Optimizer::state_part(const at::Tensor& state, size_t bucket, const spec::Range& flat) const {
  const Owned& owned = owned_[bucket];
  return state.narrow(0, owned.state_offset + flat.begin - owned.flat.begin, flat.size());
}

at::Tensor Optimizer::master(size_t bucket, const spec::Range& flat) const {
  return own_masters_ ? state_part(masters_, bucket, flat) : parameters_.values(this->bucket(bucket), flat);
}

void Optimizer::set_master(const spec::FlatEntry& entry, const spec::Range& flat, const at::Tensor& value) {
  if (!own_masters_) return;  // the parameter itself is set by its caller
  const spec::Range range = spec::intersection(flat, owned_[entry.bucket].flat);
  if (range.size() == 0) return;
  master(entry.bucket, range).copy_(value.narrow(0, range.begin - flat.begin, range.size()));
}

at::Tensor Optimizer::gradient_square_sum() const {
  const double tensor_size = static_cast<double>(mesh_.size(spec::Axis::tensor));
  const double tied_size = static_cast<double>(mesh_.tied().size());
  const spec::FlatLayout& layout = parameters_.layout();
  std::vector<GradientPart> parts;
  for (const spec::FlatEntry& entry : layout.entries) {
    const spec::Range range = spec::intersection(entry.range, share(entry.bucket));
    if (range.size() == 0) continue;
    const spec::ParameterSpec& declared = parameters_.declared(entry);
    if (declared.update == spec::Update::balance) continue;  // counts of tokens
    double copies = static_cast<double>(mesh_.holders(declared.is_expert()).replicas.size());
    if (declared.value.is_replicate() && !declared.is_expert()) copies *= tensor_size;
    if (layout.buckets[entry.bucket].tied) copies *= tied_size;
    parts.push_back({parameters_.gradients(layout.buckets[entry.bucket], range), 1.0 / copies});
  }
  return weighted_square_sum(parts, parameters_.kept_gradients().device());
}

void Optimizer::step(int64_t step, double learning_rate, double gradient_scale) {
  const AdamWSettings settings{learning_rate, settings_.beta1, settings_.beta2, settings_.epsilon, settings_.weight_decay};
  if (staging_) {
    update_on_host(settings, step, gradient_scale);
  } else {
    for (size_t index = 0; index < owned_.size(); ++index) {
      const spec::Range& flat = owned_[index].flat;
      update(index, parameters_.gradients(bucket(index), flat), parameters_.values(bucket(index), flat), settings, step,
             gradient_scale);
    }
  }
  if (sharded_ && !parameters_.sharding().values) gather_parameters();
}

void Optimizer::update(size_t index, const at::Tensor& gradient, const at::Tensor& value, const AdamWSettings& settings,
                       int64_t step, double gradient_scale) {
  const spec::Range& flat = owned_[index].flat;
  adamw_step(master(index, flat), state_part(first_moment_, index, flat), state_part(second_moment_, index, flat), gradient,
             value, owned_[index].ranges, settings, step, gradient_scale);
  balance_step(master(index, flat), gradient, value, owned_[index].balance, balance_);
}

void Optimizer::update_on_host(const AdamWSettings& settings, int64_t step, double gradient_scale) {
  const auto fetch = [&](size_t index) {
    staging_->fetch(index, parameters_.gradients(bucket(index), owned_[index].flat));
  };
  fetch(0);
  for (size_t index = 0; index < owned_.size(); ++index) {
    if (index + 1 < owned_.size()) fetch(index + 1);
    const int64_t size = owned_[index].flat.size();
    update(index, staging_->gradients(index, size), staging_->values(index, size), settings, step, gradient_scale);
    staging_->store(index, parameters_.values(bucket(index), owned_[index].flat));
  }
}

void Optimizer::gather_parameters() {
  std::vector<mesh::Work> works;
  for (size_t index = 0; index < owned_.size(); ++index) {
    const mesh::Communicator& shard = mesh_.holders(bucket(index).experts).shard;
    works.push_back(shard.all_gather(parameters_.seen_values(bucket(index)),
                                             parameters_.values(bucket(index), owned_[index].flat)));
  }
  for (mesh::Work& work : works) work.wait();
}

void Optimizer::zero_gradients() { parameters_.kept_gradients().zero_(); }

std::vector<StateView> Optimizer::views(bool only_to_save) const {
  std::vector<StateView> list;
  const bool first_of_tied = mesh_.tied().size() == 1 || mesh_.tied().rank() == 0;
  for (const spec::FlatEntry& entry : parameters_.layout().entries) {
    spec::Range range = spec::intersection(entry.range, owned_[entry.bucket].flat);
    if (only_to_save) {
      const spec::ParameterSpec& declared = parameters_.declared(entry);
      const bool copy_on_tensor_axis = declared.value.is_replicate() && !declared.is_expert() &&
                                       mesh_.coordinate(spec::Axis::tensor) != 0;
      if (mesh_.holders(declared.is_expert()).replicas.rank() != 0) continue;
      if (copy_on_tensor_axis || (parameters_.layout().buckets[entry.bucket].tied && !first_of_tied)) continue;
      range = spec::intersection(range, share(entry.bucket));
    }
    if (range.size() == 0) continue;
    list.push_back({&entry,
                    {range.begin - entry.range.begin, range.end - entry.range.begin},
                    master(entry.bucket, range),
                    state_part(first_moment_, entry.bucket, range),
                    state_part(second_moment_, entry.bucket, range)});
  }
  return list;
}

std::vector<StateView> Optimizer::state() const { return views(false); }
std::vector<StateView> Optimizer::state_to_save() const { return views(true); }

}  // namespace ridgeline::optim
