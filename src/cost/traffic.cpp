#include "cost/traffic.h"

#include <cmath>

#include "core/error.h"
#include "cost/kernels.h"
#include "cost/local_shares.h"
#include "cost/memory.h"
#include "cost/recipe.h"
#include "cost/saved_tensors.h"
#include "cost/shard_traffic.h"
#include "cost/stages.h"
#include "cost/step_schedule.h"
#include "spec/flat_layout.h"
#include "spec/parameters.h"

namespace ridgeline::cost {
namespace {

constexpr int64_t fp32_bytes = 4;

void add(Traffic& traffic, const std::vector<Message>& messages, int64_t times) {
  for (const Message& message : messages) {
    const int64_t bytes = times * std::llround(message.bytes);
    switch (message.kind) {
      case MessageKind::all_reduce:
        traffic.all_reduce += bytes;
        break;
      case MessageKind::all_gather:
        traffic.all_gather += bytes;
        break;
      case MessageKind::reduce_scatter:
        traffic.reduce_scatter += bytes;
        break;
      case MessageKind::all_to_all:
        traffic.all_to_all += bytes;
        break;
      case MessageKind::shift:
        traffic.shift += bytes;
        break;
      case MessageKind::send:
        throw InternalError("a unit does not send");
    }
  }
}

// Every micro-batch goes through every unit once each way.
void add_units(StepTraffic& traffic, const spec::ModelSpec& model, const spec::Strategy& strategy,
               spec::Precision compute, const spec::StageUnits& held) {
  const LocalShares shares = local_shares(model, strategy);
  for (const spec::Range& units : held) {
    for (int64_t unit = units.begin; unit < units.end; ++unit) {
      const UnitWork work = unit_kernels(model, strategy, shares, compute, Recipe{}, unit);
      for (const Work* pass : {&work.forward, &work.backward, &work.recompute}) {
        add(traffic.tensor, pass->messages, strategy.micro_batches());
        add(traffic.context, pass->context, strategy.micro_batches());
        add(traffic.expert, pass->expert, strategy.micro_batches());
      }
    }
  }
}

}  // namespace

StepTraffic step_traffic(const spec::ModelSpec& model, const spec::Strategy& strategy, spec::Precision compute,
                         int64_t stage, int64_t tensor_rank) {
  const std::vector<spec::StageUnits> held = held_units(model, strategy);
  StepTraffic traffic;
  add_units(traffic, model, strategy, compute, held.at(stage));

  const schedule::Schedule schedule = step_schedule(model, strategy);
  const int64_t message = boundary_bytes(model, strategy, compute, tensor_rank);
  for (const schedule::Action& action : schedule.actions.at(stage)) {
    if (schedule::is_send(action.kind)) traffic.pipeline.send += message;
    if (schedule::is_receive(action.kind)) traffic.pipeline.receive += message;
  }

  const spec::FlatLayout layout =
      spec::make_flat_layout(spec::declare_parameters(model, strategy), held, stage, tensor_rank, strategy);
  for (const spec::FlatBucket& bucket : layout.buckets) {
    const int64_t gradients = bucket.range.size() * fp32_bytes;
    // What is summed over other axes is summed where it is one's own.
    const int64_t reduced = strategy.shards_optimizer() ? gradients / bucket.shards : gradients;
    if (bucket.tensor_partial) traffic.tensor.all_reduce += reduced;
    if (bucket.tied) traffic.tied.all_reduce += reduced;
    const int64_t copies = bucket.shards * (strategy.copies() / strategy.shards());  // that hold it
    if (!strategy.shards_optimizer()) {
      if (copies > 1) traffic.data.all_reduce += gradients;
      continue;
    }
    // An expert may have no copy to share with.
    if (!layout.by_units() && bucket.shards > 1) traffic.data.reduce_scatter += gradients;
    if (strategy.shards() < strategy.copies()) traffic.data.all_reduce += reduced;
    if (!strategy.shards_values() && bucket.shards > 1) {
      traffic.data.all_gather += bucket.range.size() * element_bytes(Element::compute, compute);
    }
  }
  if (layout.by_units()) {
    const ShardTraffic shards =
        shard_traffic(model, layout, held.at(stage), schedule.actions.at(stage), compute, strategy.shards_values());
    traffic.data.reduce_scatter += shards.reduce_scatter;
    traffic.data.all_gather += shards.all_gather;
  }
  return traffic;
}

}  // namespace ridgeline::cost
