// RankModel: what one rank holds of the model, and how it runs with the ranks of its mesh. Training puts an optimizer
// behind it; evaluation needs no more than this.
#pragma once

#include <memory>
#include <vector>

#include "data/samples.h"
#include "mesh/mesh.h"
#include "nn/flat_parameters.h"
#include "nn/stage.h"
#include "optim/unit_shards.h"
#include "spec/train.h"
#include "train/batches.h"
#include "train/pipeline_executor.h"

namespace ridgeline::train {

class RankModel {
 public:
  // Parameters are zero: initialise them or read them from a checkpoint. `spec.strategy` must have been derived
  // (derive_data). The mesh and the source must outlive the model.
  RankModel(const spec::TrainSpec& spec, const mesh::Mesh& mesh, const data::SampleSource& source,
            nn::Gradients gradients);
  RankModel(const RankModel&) = delete;  // its parts refer to each other
  RankModel& operator=(const RankModel&) = delete;

  // Mean loss over the first `samples` held-out samples, by the code that training's loss comes from. Collective.
  double evaluate(int64_t samples);

  // Sum over all ranks of values that each rank holds a share of, read on the host. Collective.
  std::vector<double> sum_over_world(const at::Tensor& values) const;

  nn::FlatParameters& parameters() { return *parameters_; }
  const nn::FlatParameters& parameters() const { return *parameters_; }
  const std::vector<spec::StageUnits>& stages() const { return stages_; }
  const Batches& batches() const { return batches_; }
  PipelineExecutor& executor() { return *executor_; }
  // What routers of this rank have added to the loss since it was last zeroed (nn/context.h); undefined without experts.
  const at::Tensor& auxiliary_loss() const { return context_.auxiliary_loss; }
  optim::UnitShards* unit_shards() { return unit_shards_.get(); }  // with ZeRO-2 and 3, else null
  // After values were changed from outside.
  void values_changed();

 private:
  const mesh::Mesh& mesh_;
  nn::Context context_;
  Batches batches_;
  std::vector<spec::StageUnits> stages_;  // what each stage holds
  std::unique_ptr<nn::FlatParameters> parameters_;
  std::unique_ptr<optim::UnitShards> unit_shards_;  // with ZeRO-2 and 3
  std::vector<std::unique_ptr<nn::Stage>> chunks_;  // of this rank's stage
  std::unique_ptr<PipelineExecutor> executor_;
};

at::ScalarType scalar_type(spec::Precision precision);

}  // namespace ridgeline::train
