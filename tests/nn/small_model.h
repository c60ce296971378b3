// Models small enough to differentiate by libtorch's autograd, with values in every parameter, for the tests of this
// room.
#pragma once

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "nn/initial_values.h"
#include "nn/kernels/cross_entropy.h"
#include "nn/reference_model.h"
#include "nn/stage.h"
#include "spec/families.h"

namespace ridgeline::nn {

// Sizes that differ, so that no two dims can be mistaken for each other; the vocabulary divides by nothing.
inline spec::ModelSpec small_model(bool tied = true) {
  spec::ModelSpec model;
  model.layers = 2;
  model.hidden = 24;
  model.heads = 4;
  model.ffn_hidden = 56;
  model.vocabulary = 37;
  model.sequence = 12;
  model.tied = tied;
  return model;
}

// A family of spec/families.h, small.
inline spec::ModelSpec small_family(const std::string& name) { return spec::as_family(small_model(), name); }

// Global values of all parameters in fp32. Norms and biases are not left at one and zero, where errors could hide.
inline NamedTensors whole_values(const spec::ModelSpec& model, uint64_t seed = 5) {
  NamedTensors values;
  for (const spec::ParameterSpec& parameter : spec::declare_parameters(model, {})) {
    spec::ParameterSpec spread = parameter;
    spread.initial = spec::Initial::normal;
    spread.std = 0.2;
    const at::Tensor noise =
        initial_value(spread, spec::local_box(parameter.shape, spec::Placement::replicate(), 1, 0), seed);
    values[parameter.name] = parameter.initial == spec::Initial::ones ? noise.add(1.0) : noise;
  }
  return values;
}

inline at::Tensor slice_of(const at::Tensor& whole, const spec::Box& box) {
  at::Tensor part = whole;
  for (size_t dim = 0; dim < box.offset.size(); ++dim) part = part.narrow(dim, box.offset[dim], box.extent[dim]);
  return part;
}

// A stage of `model` on one rank of `tensor`, holding `units`, with the values of `whole`.
class SmallStage {
 public:
  SmallStage(const spec::ModelSpec& model, const spec::Strategy& strategy, const mesh::Communicator& tensor,
             at::ScalarType compute, const NamedTensors& whole, spec::Range units)
      : context_{model, strategy, spec::residual_placement(strategy), &tensor, 77, compute, at::kCPU},
        parameters_(make_parameters(context_, units)),
        stage_(context_, *parameters_, units) {
    context_.auxiliary_loss = at::zeros({1}, at::kDouble);
    for (const spec::FlatEntry& entry : parameters_->layout().entries) {
      const std::string& name = parameters_->declared(entry).name;
      parameters_->parameter(name).value.copy_(slice_of(whole.at(name), entry.box));
    }
  }

  const Stage& stage() const { return stage_; }
  const Context& context() const { return context_; }
  FlatParameters& parameters() { return *parameters_; }
  at::Tensor gradient(const std::string& name) const { return parameters_->parameter(name).gradient; }

 private:
  static std::unique_ptr<FlatParameters> make_parameters(const Context& context, spec::Range units) {
    std::vector<spec::ParameterSpec> declared = spec::declare_parameters(context.model, context.strategy);
    const int64_t end = spec::unit_count(context.model);
    std::vector<spec::Range> stages;
    if (units.begin > 0) stages.push_back({0, units.begin});
    const int64_t stage = static_cast<int64_t>(stages.size());
    stages.push_back(units);
    if (units.end < end) stages.push_back({units.end, end});
    spec::FlatLayout layout = spec::make_flat_layout(declared, spec::one_chunk_stages(stages), stage,
                                                     context.tensor->size(), context.tensor->rank(), 1, 25.0);
    return std::make_unique<FlatParameters>(std::move(declared), std::move(layout), context.compute, context.device);
  }

  Context context_;
  std::unique_ptr<FlatParameters> parameters_;
  Stage stage_;
};

// The whole model on one rank.
struct OneRank {
  mesh::Communicator alone = mesh::Communicator::make_single("tensor");
  SmallStage small;

  OneRank(const spec::ModelSpec& model, const NamedTensors& whole, spec::Recompute recompute = spec::Recompute::none,
          at::ScalarType compute = at::kFloat)
      : small(model, with(recompute), alone, compute, whole, {0, spec::unit_count(model)}) {}

  static spec::Strategy with(spec::Recompute recompute) {
    spec::Strategy strategy;
    strategy.recompute = recompute;
    return strategy;
  }
};

inline MicroBatch random_batch(const spec::ModelSpec& model, int64_t size, int64_t number = 0) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(static_cast<uint64_t>(100 + number));
  const auto draw = [&] { return at::randint(0, model.vocabulary, {size * model.sequence}, generator, at::kLong); };
  MicroBatch batch;
  batch.size = size;
  batch.sequence = model.sequence;
  batch.tokens = draw();
  batch.targets = draw();
  batch.samples = at::arange(number * size, (number + 1) * size, at::kLong);
  batch.step = 3;
  batch.gradient_scale = 1.0 / static_cast<double>(batch.tokens_total());
  return batch;
}

// Norm of the difference over the norm.
inline double relative_error(const at::Tensor& actual, const at::Tensor& expected) {
  const at::Tensor gold = expected.to(at::kDouble);
  return (actual.to(at::kDouble) - gold).norm().item<double>() / gold.norm().item<double>();
}

}  // namespace ridgeline::nn
