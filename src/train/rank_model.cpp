#include "train/rank_model.h"

#include <c10/core/InferenceMode.h>

#include "core/error.h"
#include "cost/stages.h"

namespace ridgeline::train {

at::ScalarType scalar_type(spec::Precision precision) {
  switch (precision) {
    case spec::Precision::fp32:
      return at::kFloat;
    case spec::Precision::bf16:
      return at::kBFloat16;
    case spec::Precision::fp16:
      return at::kHalf;
  }
  throw InternalError("unknown precision");
}

RankModel::RankModel(const spec::TrainSpec& spec, const mesh::Mesh& mesh, const data::SampleSource& source,
                     nn::Gradients gradients)
    : mesh_(mesh),
      context_{spec.model,
               spec.strategy,
               spec::residual_placement(spec.strategy),
               &mesh.group(spec::Axis::tensor),
               spec.training.seed,
               scalar_type(spec.precision.compute),
               mesh.device().torch(),
               spec.strategy.context > 1 ? &mesh.group(spec::Axis::context) : nullptr,
               &mesh.expert()},
      batches_(source, context_.strategy, mesh.coordinate(spec::Axis::data), mesh.coordinate(spec::Axis::context),
               context_.device),
      stages_(cost::held_units(context_.model, context_.strategy)) {
  const c10::InferenceMode no_autograd;
  if (context_.model.experts > 0) {
    context_.auxiliary_loss = at::zeros({1}, at::TensorOptions().dtype(at::kDouble).device(context_.device));
  }
  const spec::Strategy& strategy = context_.strategy;
  const int64_t stage = mesh.coordinate(spec::Axis::pipeline);
  std::vector<spec::ParameterSpec> declared = spec::declare_parameters(context_.model, strategy);
  spec::FlatLayout layout =
      spec::make_flat_layout(declared, stages_, stage, mesh.coordinate(spec::Axis::tensor), strategy,
                             mesh.expert().rank());
  parameters_ =
      std::make_unique<nn::FlatParameters>(std::move(declared), std::move(layout), context_.compute, context_.device,
                                           nn::Sharding::of(strategy, mesh.shard().rank(), mesh.holders(true).shard.rank()),
                                           gradients);
  if (strategy.shards_gradients()) unit_shards_ = std::make_unique<optim::UnitShards>(*parameters_, mesh_);
  std::vector<const nn::Stage*> chunks;
  for (const spec::Range& units : stages_[stage]) {
    chunks_.push_back(std::make_unique<nn::Stage>(context_, *parameters_, units, unit_shards_.get()));
    chunks.push_back(chunks_.back().get());
  }
  executor_ = std::make_unique<PipelineExecutor>(std::move(chunks), mesh_, context_.compute, context_.device);
}

void RankModel::values_changed() {
  if (unit_shards_) unit_shards_->values_changed();
}

double RankModel::evaluate(int64_t samples) {
  const c10::InferenceMode no_autograd;
  const spec::Strategy& strategy = context_.strategy;
  const schedule::Schedule schedule =
      schedule::make_forward_schedule(strategy, batches_.evaluation_micro_batches(samples));
  const at::Tensor loss_sum = executor_->run(
      schedule, [&](int64_t index) { return batches_.evaluation(samples, index); }, [](int64_t) {});
  // The ranks of a tensor axis hold equal loss sums; each counts its share.
  const double sum = sum_over_world(loss_sum.div(static_cast<double>(strategy.tensor)))[0];
  return sum / static_cast<double>(samples * context_.model.sequence);
}

std::vector<double> RankModel::sum_over_world(const at::Tensor& values) const {
  mesh_.world().all_reduce(values).wait();
  const at::Tensor host = values.to(at::kCPU);
  return {host.data_ptr<double>(), host.data_ptr<double>() + host.numel()};
}

}  // namespace ridgeline::train
