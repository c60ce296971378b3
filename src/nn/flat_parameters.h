// FlatParameters: the storage of a pipeline stage's parameters and main gradients.
//
// Values lie in one flat buffer in the compute precision, main gradients in one in fp32 at the same offsets
// (spec/flat_layout.h); what pieces see are views. Gradients are added to over the micro-batches of a step and zeroed
// before the next.
//
// Either may be sharded: then this rank keeps its shard of every bucket, and views point into a working buffer that
// holds the units at work alone. Who fills and empties it is optim/unit_shards.h. Nothing here ever allocates a whole
// copy of what is sharded.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "spec/flat_layout.h"
#include "spec/parameters.h"

namespace ridgeline::nn {

// Views of one parameter, shaped as this rank's box of it. What a piece must know of its share of a layer (which heads,
// which part of the vocabulary) it reads from the box, which follows from the declared placement.
struct Parameter {
  at::Tensor value;     // compute precision
  at::Tensor gradient;  // fp32
  spec::Box box = {};   // of the global tensor

  // The part of dim `dim` of the global tensor that this rank holds.
  spec::Range held(int64_t dim) const { return {box.offset[dim], box.offset[dim] + box.extent[dim]}; }
};

// What of a stage's storage is sharded, and which shard this rank keeps.
struct Sharding {
  bool values = false;
  bool gradients = false;
  int64_t shard = 0;         // of a bucket's shards
  int64_t expert_shard = 0;  // of those of a bucket of experts

  static Sharding of(const spec::Strategy& strategy, int64_t shard, int64_t expert_shard) {
    return {strategy.shards_values(), strategy.shards_gradients(), shard, expert_shard};
  }
};

// Where nothing is trained, gradients have shapes but no memory (the meta device): whoever touches one fails at once.
enum class Gradients { kept, none };

class FlatParameters {
 public:
  // Sharding of values or gradients needs a layout by units.
  FlatParameters(std::vector<spec::ParameterSpec> declared, spec::FlatLayout layout, at::ScalarType compute,
                 at::Device device, const Sharding& sharding = {}, Gradients gradients = Gradients::kept);

  const spec::FlatLayout& layout() const { return layout_; }
  const Sharding& sharding() const { return sharding_; }
  const std::vector<spec::ParameterSpec>& declared() const { return declared_; }
  const spec::ParameterSpec& declared(const spec::FlatEntry& entry) const { return declared_[entry.parameter]; }

  // Views of the parameter called `name`; InternalError where this stage does not hold it.
  Parameter parameter(const std::string& name) const;
  // The same, with undefined tensors where the model declares no such parameter.
  Parameter parameter_if_declared(const std::string& name) const;

  // All that this rank keeps: everything, or its shards.
  const at::Tensor& kept_values() const { return values_.kept; }
  const at::Tensor& kept_gradients() const { return gradients_.kept; }
  // Elements `flat` of the layout, which lie in `bucket` and in what this rank keeps.
  at::Tensor values(const spec::FlatBucket& bucket, const spec::Range& flat) const {
    return part(values_, bucket, flat);
  }
  at::Tensor gradients(const spec::FlatBucket& bucket, const spec::Range& flat) const {
    return part(gradients_, bucket, flat);
  }
  // All of a bucket, where pieces see it.
  at::Tensor seen_values(const spec::FlatBucket& bucket) const { return seen(values_, bucket); }
  at::Tensor seen_gradients(const spec::FlatBucket& bucket) const { return seen(gradients_, bucket); }

  // This rank's shard of `bucket`, and what it keeps of an entry's values, as elements of the layout.
  spec::Range shard(const spec::FlatBucket& bucket) const {
    return layout_.owned(bucket, bucket.experts ? sharding_.expert_shard : sharding_.shard);
  }
  spec::Range kept_of(const spec::FlatEntry& entry) const;

  // Hears of values before they are rounded: fp32, one-dimensional, on the CPU, of the elements `flat` of the layout,
  // which lie in `entry`.
  using Sink = std::function<void(const spec::FlatEntry& entry, const spec::Range& flat, const at::Tensor& value)>;

  // Draws the initial value of every parameter from its own named stream, so that it is the same in every layout and on
  // every device. `sink` keeps masters.
  void initialise(uint64_t seed, const Sink& sink);

 private:
  struct Storage {
    bool sharded = false;
    at::Tensor kept;
    at::Tensor working;  // where sharded
  };
  Storage make_storage(bool sharded, const at::TensorOptions& options) const;
  at::Tensor part(const Storage& storage, const spec::FlatBucket& bucket, const spec::Range& flat) const;
  at::Tensor seen(const Storage& storage, const spec::FlatBucket& bucket) const;

  std::vector<spec::ParameterSpec> declared_;
  spec::FlatLayout layout_;
  Sharding sharding_;
  std::unordered_map<std::string, size_t> entry_of_;
  Storage values_;
  Storage gradients_;
};

}  // namespace ridgeline::nn
