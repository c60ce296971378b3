#include "optim/optimizer.h"

#include <algorithm>

#include "optim/gradient_norm.h"

namespace ridgeline::optim {
namespace {

spec::Range intersection(const spec::Range& a, const spec::Range& b) {
  const int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

at::Tensor part(const at::Tensor& flat, const spec::Range& range) { return flat.narrow(0, range.begin, range.size()); }

}  // namespace

Optimizer::Optimizer(nn::FlatParameters& parameters, const mesh::Mesh& mesh, const spec::Strategy& strategy,
                     const spec::OptimizerSpec& settings)
    : parameters_(parameters),
      mesh_(mesh),
      settings_(settings),
      sharded_(strategy.zero_stage >= 1 && mesh.size(spec::Axis::data) > 1),
      own_masters_(parameters.values().scalar_type() != at::kFloat) {
  const spec::FlatLayout& layout = parameters.layout();
  int64_t elements = 0;
  for (size_t bucket = 0; bucket < layout.buckets.size(); ++bucket) {
    const spec::Range flat = sharded_ ? share(bucket) : layout.buckets[bucket].range;
    owned_.push_back({flat, elements, {}});
    elements += flat.size();
  }
  for (const spec::FlatEntry& entry : layout.entries) {
    Owned& owned = owned_[entry.bucket];
    const spec::Range range = intersection(entry.range, owned.flat);
    if (range.size() == 0) continue;
    owned.ranges.push_back(
        {range.begin - owned.flat.begin, range.end - owned.flat.begin, parameters.declared(entry).decay});
  }
  const auto options = parameters.gradients().options();
  if (own_masters_) masters_ = at::zeros({elements}, options);
  first_moment_ = at::zeros({elements}, options);
  second_moment_ = at::zeros({elements}, options);
}

spec::Range Optimizer::share(size_t bucket) const {
  return parameters_.layout().owned(parameters_.layout().buckets[bucket], mesh_.coordinate(spec::Axis::data));
}

at::Tensor Optimizer::master(const spec::Range& flat, int64_t state_offset) const {
  return own_masters_ ? masters_.narrow(0, state_offset, flat.size()) : part(parameters_.values(), flat);
}

void Optimizer::set_master(const spec::FlatEntry& entry, const at::Tensor& value) {
  if (!own_masters_) return;  // the parameter itself is set by its caller
  const Owned& owned = owned_[entry.bucket];
  const spec::Range range = intersection(entry.range, owned.flat);
  if (range.size() == 0) return;
  master(range, owned.state_offset + range.begin - owned.flat.begin)
      .copy_(value.reshape({-1}).narrow(0, range.begin - entry.range.begin, range.size()));
}

at::Tensor Optimizer::gradient_square_sum() const {
  const double tensor_size = static_cast<double>(mesh_.size(spec::Axis::tensor));
  const double tied_size = static_cast<double>(mesh_.tied().size());
  const spec::FlatLayout& layout = parameters_.layout();
  std::vector<GradientPart> parts;
  for (const spec::FlatEntry& entry : layout.entries) {
    const spec::Range range = intersection(entry.range, share(entry.bucket));
    if (range.size() == 0) continue;
    double copies = parameters_.declared(entry).value.is_replicate() ? tensor_size : 1.0;
    if (layout.buckets[entry.bucket].tied) copies *= tied_size;
    parts.push_back({part(parameters_.gradients(), range), 1.0 / copies});
  }
  return weighted_square_sum(parts, parameters_.gradients().device());
}

void Optimizer::step(int64_t step, double learning_rate, double gradient_scale) {
  for (const Owned& owned : owned_) {
    AdamWSettings settings{learning_rate, settings_.beta1, settings_.beta2, settings_.epsilon, settings_.weight_decay};
    adamw_step(master(owned.flat, owned.state_offset), first_moment_.narrow(0, owned.state_offset, owned.flat.size()),
               second_moment_.narrow(0, owned.state_offset, owned.flat.size()), part(parameters_.gradients(), owned.flat),
               part(parameters_.values(), owned.flat), owned.ranges, settings, step, gradient_scale);
  }
  if (sharded_) gather_parameters();
}

void Optimizer::gather_parameters() {
  const mesh::Communicator& data = mesh_.group(spec::Axis::data);
  std::vector<mesh::Work> works;
  for (size_t bucket = 0; bucket < owned_.size(); ++bucket) {
    works.push_back(data.all_gather(part(parameters_.values(), parameters_.layout().buckets[bucket].range),
                                    part(parameters_.values(), owned_[bucket].flat)));
  }
  for (mesh::Work& work : works) work.wait();
}

void Optimizer::zero_gradients() { parameters_.gradients().zero_(); }

std::vector<StateView> Optimizer::views(bool only_to_save) const {
  std::vector<StateView> list;
  const bool first_of_tied = mesh_.tied().size() == 1 || mesh_.tied().rank() == 0;
  for (const spec::FlatEntry& entry : parameters_.layout().entries) {
    spec::Range range = intersection(entry.range, owned_[entry.bucket].flat);
    if (only_to_save) {
      const bool copy_on_tensor_axis =
          parameters_.declared(entry).value.is_replicate() && mesh_.coordinate(spec::Axis::tensor) != 0;
      if (copy_on_tensor_axis || (parameters_.layout().buckets[entry.bucket].tied && !first_of_tied)) continue;
      range = intersection(range, share(entry.bucket));
    }
    if (range.size() == 0) continue;
    const Owned& owned = owned_[entry.bucket];
    const int64_t offset = owned.state_offset + range.begin - owned.flat.begin;
    list.push_back({&entry,
                    {range.begin - entry.range.begin, range.end - entry.range.begin},
                    master(range, offset),
                    first_moment_.narrow(0, offset, range.size()),
                    second_moment_.narrow(0, offset, range.size())});
  }
  return list;
}

std::vector<StateView> Optimizer::state() const { return views(false); }
std::vector<StateView> Optimizer::state_to_save() const { return views(true); }

}  // namespace ridgeline::optim
