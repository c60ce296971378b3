// dump_training FAMILY FILE: trains a small model of the family (spec/families.h) on one rank in fp32 and writes all that another
// implementation needs to repeat it, and what came out: weights, data, gradients of the first step, losses and norms.
#include <cstdio>
#include <string>

#include "spec/families.h"
#include "train/small_run.h"
#include "train/write_tensors.h"

namespace ridgeline::train {
namespace {

void add_parameters(NamedList& tensors, const nn::FlatParameters& parameters, const std::string& prefix, bool gradients) {
  for (const spec::FlatEntry& entry : parameters.layout().entries) {
    const std::string& name = parameters.declared(entry).name;
    const nn::Parameter parameter = parameters.parameter(name);
    tensors.emplace_back(prefix + name, (gradients ? parameter.gradient : parameter.value).clone());
  }
}

void dump(const std::string& family, const std::string& path) {
  TemporaryFolder folder;
  const std::string data = (folder.path() / "tokens").string();
  write_tokens(data, 101, 20000);
  spec::TrainSpec spec = small_spec(data);
  spec.model = spec::as_family(spec.model, family);
  spec::derive_data(spec.strategy, spec.model, 1);
  const data::SampleSource source(spec.data, spec.model.sequence, spec.model.vocabulary, spec.training.seed);
  const mesh::Mesh mesh({}, 0, mesh::Store::in_process(), platform::Device::select("cpu"), mesh::rank_options());
  Trainer trainer(spec, mesh, source);

  NamedList tensors;
  add_parameters(tensors, trainer.parameters(), "weight.", false);
  const int64_t steps = spec.training.steps, batch = spec.strategy.global_batch, sequence = spec.model.sequence;
  at::Tensor tokens = at::empty({steps, batch, sequence}, at::kLong), targets = at::empty_like(tokens);
  at::Tensor results = at::empty({steps, 3}, at::kDouble), auxiliary = at::zeros({steps}, at::kDouble);
  for (int64_t step = 0; step < steps; ++step) {
    for (int64_t i = 0; i < batch; ++i) {
      auto row = [&](at::Tensor& t) {
        return std::span<int64_t>(t.data_ptr<int64_t>() + (step * batch + i) * sequence, sequence);
      };
      source.training_sample(step * batch + i, row(tokens), row(targets));
    }
    const StepResult result = trainer.step(step);
    results[step][0] = result.loss;
    results[step][1] = result.gradient_norm;
    results[step][2] = result.learning_rate;
    auxiliary[step] = result.auxiliary_loss.value_or(0.0);
    if (step == 0) add_parameters(tensors, trainer.parameters(), "gradient.", true);
  }
  tensors.emplace_back("tokens", tokens);
  tensors.emplace_back("targets", targets);
  tensors.emplace_back("results", results);
  const spec::ModelSpec& model = spec.model;
  tensors.emplace_back("shape", at::tensor({model.layers, model.hidden, model.heads, model.vocabulary, model.sequence,
                                            model.key_heads(), model.head_size(), model.ffn(), model.sliding_window,
                                            int64_t{model.tied}}));
  if (model.experts > 0) {
    tensors.emplace_back("auxiliary", auxiliary);
    tensors.emplace_back("experts", at::tensor({double(model.experts), double(model.experts_per_token),
                                                model.router_auxiliary_loss, model.router_z_loss}, at::kDouble));
  }
  tensors.emplace_back("optimizer",
                       at::tensor({spec.optimizer.beta1, spec.optimizer.beta2, spec.optimizer.epsilon,
                                   spec.optimizer.weight_decay, spec.optimizer.clip}, at::kDouble));
  write_tensors(path, tensors);
}

}  // namespace
}  // namespace ridgeline::train

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: dump_training FAMILY FILE\n");
    return 2;
  }
  ridgeline::train::dump(argv[1], argv[2]);
}
