// Optimizer: AdamW over the flat buffers of a stage.
//
// Keeps fp32 masters (in fp32 training the parameters are their own masters) and two moments for what this rank owns: the
// whole buffer, or with ZeRO its shard of every bucket. One fused pass updates masters and moments and writes the rounded
// parameters; with ZeRO-1 and 2 the parameters are then gathered from all shards.
//
// With strategy.offload_optimizer masters and moments lie in host memory, and the update is computed there: bucket by
// bucket gradients come and values go while the host works on another (optim/host_staging.h). On the CPU that is the same
// code, with nothing won. Parameters are then never their own masters.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <string>
#include <vector>

#include "mesh/mesh.h"
#include "nn/flat_parameters.h"
#include "optim/adamw.h"
#include "optim/balance.h"
#include "optim/host_staging.h"
#include "spec/train.h"

namespace ridgeline::optim {

// The state of a part of one parameter, for checkpoints: all fp32, one-dimensional, views.
struct StateView {
  const spec::FlatEntry* entry;
  spec::Range elements;  // of the entry's box, row-major
  at::Tensor master, first_moment, second_moment;
};

class Optimizer {
 public:
  Optimizer(nn::FlatParameters& parameters, const mesh::Mesh& mesh, const spec::Strategy& strategy,
            const spec::OptimizerSpec& settings, const Balance& balance = {});

  // Takes fp32 values into the masters (nn::FlatParameters::Sink).
  void set_master(const spec::FlatEntry& entry, const spec::Range& flat, const at::Tensor& value);

  // Sum of squares of the reduced gradients over this rank's share, such that the sum over all ranks is that of the model:
  // each rank counts the shard of every bucket that is its own (with ZeRO), divided by the number of copies elsewhere.
  // A double tensor of one element on the device; no host synchronisation.
  at::Tensor gradient_square_sum() const;

  // Update number `step` (from 0). Gradients are multiplied by gradient_scale first (loss scaling and clipping).
  void step(int64_t step, double learning_rate, double gradient_scale);
  void zero_gradients();

  // Parts of parameters whose state this rank keeps.
  std::vector<StateView> state() const;
  // Parts of parameters that this rank should save, so that every element of the model is saved once.
  std::vector<StateView> state_to_save() const;

 private:
  struct Owned {
    spec::Range flat;      // in the flat buffers
    int64_t state_offset;  // of the same elements in the state buffers
    std::vector<AdamWRange> ranges;     // relative to flat.begin, by weight decay
    std::vector<BalanceRange> balance;  // the same of spec::Update::balance
  };
  const spec::FlatBucket& bucket(size_t index) const { return parameters_.layout().buckets[index]; }
  // Elements `flat` of the layout, which this rank owns in bucket number `bucket`.
  at::Tensor state_part(const at::Tensor& state, size_t bucket, const spec::Range& flat) const;
  at::Tensor master(size_t bucket, const spec::Range& flat) const;
  std::vector<StateView> views(bool only_to_save) const;
  spec::Range share(size_t bucket) const;  // of this rank when work is divided
  void update(size_t index, const at::Tensor& gradient, const at::Tensor& value, const AdamWSettings& settings,
              int64_t step, double gradient_scale);
  void update_on_host(const AdamWSettings& settings, int64_t step, double gradient_scale);
  void gather_parameters();

  nn::FlatParameters& parameters_;
  const mesh::Mesh& mesh_;
  spec::OptimizerSpec settings_;
  Balance balance_;
  bool sharded_;
  bool own_masters_;
  std::vector<Owned> owned_;  // by bucket
  at::Tensor masters_, first_moment_, second_moment_;
  std::unique_ptr<HostStaging> staging_;  // with offloading
};

}  // namespace ridgeline::optim
