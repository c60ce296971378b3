#include "nn/flat_parameters.h"

#include <algorithm>

#include "core/error.h"
#include "nn/initial_values.h"

namespace ridgeline::nn {

FlatParameters::FlatParameters(std::vector<spec::ParameterSpec> declared, spec::FlatLayout layout,
                               at::ScalarType compute, at::Device device, const Sharding& sharding, Gradients gradients)
    : declared_(std::move(declared)), layout_(std::move(layout)), sharding_(sharding) {
  RIDGELINE_ASSERT(layout_.by_units() || !(sharding.values || sharding.gradients));
  for (size_t index = 0; index < layout_.entries.size(); ++index) {
    entry_of_[declared_[layout_.entries[index].parameter].name] = index;
  }
  values_ = make_storage(sharding.values, at::TensorOptions().dtype(compute).device(device));
  const at::Device gradient_device = gradients == Gradients::kept ? device : at::Device(at::kMeta);
  gradients_ = make_storage(sharding.gradients, at::TensorOptions().dtype(at::kFloat).device(gradient_device));
}

// Zeroed, so that padding between parameters never holds garbage that a reduction or a norm could see.
FlatParameters::Storage FlatParameters::make_storage(bool sharded, const at::TensorOptions& options) const {
  if (!sharded) return {false, at::zeros({layout_.elements}, options), {}};
  return {true, at::zeros({layout_.shard_elements}, options),
          at::zeros({layout_.working_elements()}, options)};
}

at::Tensor FlatParameters::part(const Storage& storage, const spec::FlatBucket& bucket, const spec::Range& flat) const {
  if (!storage.sharded) return storage.kept.narrow(0, flat.begin, flat.size());
  const spec::Range own = shard(bucket);
  RIDGELINE_ASSERT(flat.begin >= own.begin && flat.end <= own.end);
  return storage.kept.narrow(0, bucket.shard_begin + flat.begin - own.begin, flat.size());
}

at::Tensor FlatParameters::seen(const Storage& storage, const spec::FlatBucket& bucket) const {
  if (!storage.sharded) return storage.kept.narrow(0, bucket.range.begin, bucket.range.size());
  return storage.working.narrow(0, layout_.working_begin(bucket), bucket.range.size());
}

Parameter FlatParameters::parameter(const std::string& name) const {
  const auto found = entry_of_.find(name);
  if (found == entry_of_.end()) throw InternalError("no parameter {} in this stage", name);
  const spec::FlatEntry& entry = layout_.entries[found->second];
  const spec::FlatBucket& bucket = layout_.buckets[entry.bucket];
  auto view = [&](const Storage& storage) {
    return seen(storage, bucket)
        .narrow(0, entry.range.begin - bucket.range.begin, entry.range.size())
        .view(entry.box.extent);
  };
  return {view(values_), view(gradients_), entry.box};
}

spec::Range FlatParameters::kept_of(const spec::FlatEntry& entry) const {
  return sharding_.values ? spec::intersection(entry.range, shard(layout_.buckets[entry.bucket])) : entry.range;
}

Parameter FlatParameters::parameter_if_declared(const std::string& name) const {
  const bool declared = std::any_of(declared_.begin(), declared_.end(),
                                    [&](const spec::ParameterSpec& parameter) { return parameter.name == name; });
  return declared ? parameter(name) : Parameter{};
}

void FlatParameters::initialise(uint64_t seed, const Sink& sink) {
  for (const spec::FlatEntry& entry : layout_.entries) {
    const spec::Range kept = kept_of(entry);
    if (kept.size() == 0) continue;
    const at::Tensor initial = initial_value(declared(entry), entry.box, seed);
    const at::Tensor part = initial.view({-1}).narrow(0, kept.begin - entry.range.begin, kept.size());
    sink(entry, kept, part);
    values(layout_.buckets[entry.bucket], kept).copy_(part);
  }
}

}  // namespace ridgeline::nn
