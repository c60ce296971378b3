// How the ranks of a strategy's axes lie to each other: what collective_seconds is asked about. Tensor is innermost, then
// context, data and pipeline (mesh/layout.h); experts lie on neighbours among the copies of the dense layers.
#pragma once

#include "simulate/collective.h"
#include "spec/strategy.h"

namespace ridgeline::simulate {

inline Group tensor_group(const spec::Strategy& strategy) { return {strategy.tensor, 1}; }
inline Group shard_group(const spec::Strategy& strategy) { return {strategy.shards(), strategy.tensor}; }
inline Group replica_group(const spec::Strategy& strategy) {
  return {strategy.copies() / strategy.shards(), strategy.tensor * strategy.shards()};
}
inline Group context_group(const spec::Strategy& strategy) { return {strategy.context, strategy.tensor}; }

inline Group expert_group(const spec::Strategy& strategy) {
  return {strategy.expert, strategy.keeps_experts_whole() ? 1 : strategy.tensor};
}
inline Group expert_shard_group(const spec::Strategy& strategy) {
  return {strategy.expert_shards(), strategy.expert * (strategy.keeps_experts_whole() ? 1 : strategy.tensor)};
}

}  // namespace ridgeline::simulate
