// Small real trainings for tests: ranks are threads that talk as ranks of one machine do, data is a token file in a
// temporary folder.
#pragma once

#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "data/samples.h"
#include "data/token_writer.h"
#include "mesh/ranks.h"
#include "platform/device.h"
#include "spec/train.h"
#include "train/trainer.h"

namespace ridgeline::train {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ridgeline-test-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = pattern;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Tokens with something to learn: each depends on the one before.
inline void write_tokens(const std::string& prefix, int64_t vocabulary, int64_t count) {
  std::mt19937_64 random(7);
  std::vector<int64_t> tokens;
  int64_t token = 0;
  for (int64_t i = 0; i < count; ++i) {
    token = (token * 5 + 1 + static_cast<int64_t>(random() % 7)) % vocabulary;
    tokens.push_back(token);
  }
  data::TokenWriter writer(prefix, data::token_type_for(vocabulary));
  constexpr size_t document = 11;  // shorter than a sample
  for (size_t begin = 0; begin < tokens.size(); begin += document) {
    writer.add(std::span<const int64_t>(tokens).subspan(begin, std::min(document, tokens.size() - begin)));
    writer.end_document();
  }
  writer.finish();
}

// The vocabulary divides by nothing, layers do not divide by 2 or 4, heads allow tensor up to 8.
inline spec::TrainSpec small_spec(const std::string& data_prefix) {
  spec::TrainSpec spec;
  spec.model.layers = 5;
  spec.model.hidden = 64;
  spec.model.heads = 8;
  spec.model.vocabulary = 101;
  spec.model.sequence = 16;
  spec.strategy.global_batch = 8;
  spec.data.path = data_prefix;
  spec.data.validation_fraction = 0.2;
  spec.optimizer.lr = 1e-3;
  spec.optimizer.warmup_steps = 4;
  spec.training.steps = 20;
  return spec;
}

struct History {
  std::vector<double> loss, gradient_norm, auxiliary_loss;
  double held_out = 0.0;
};

using WithTrainer = std::function<void(Trainer& trainer, const mesh::Mesh& mesh)>;

// Builds a trainer on each of `ranks` threads and calls `function` on each.
inline void with_trainers(spec::TrainSpec spec, int64_t ranks, const WithTrainer& function,
                          const mesh::MeshOptions& options = mesh::rank_options()) {
  spec::derive_data(spec.strategy, spec.model, ranks);
  const data::SampleSource source(spec.data, spec.model.sequence, spec.model.vocabulary, spec.training.seed);
  mesh::run_ranks(ranks, [&](int64_t rank, std::shared_ptr<mesh::Store> store) {
    const mesh::Mesh mesh(mesh::MeshShape::of(spec.strategy), rank, store, platform::Device::select("cpu"),
                          options);
    Trainer trainer(spec, mesh, source);
    function(trainer, mesh);
    mesh.world().barrier().wait();
  });
}

// Steps [begin, end) of a trainer; what rank 0 saw (all ranks see the same).
inline void run_steps(Trainer& trainer, const mesh::Mesh& mesh, int64_t begin, int64_t end, History& history) {
  for (int64_t step = begin; step < end; ++step) {
    const StepResult result = trainer.step(step);
    if (mesh.rank() != 0) continue;
    history.loss.push_back(result.loss);
    history.gradient_norm.push_back(result.gradient_norm);
    history.auxiliary_loss.push_back(result.auxiliary_loss.value_or(0.0));
  }
}

inline History train_layout(const spec::TrainSpec& spec, int64_t ranks,
                            const mesh::MeshOptions& options = mesh::rank_options()) {
  History history;
  const auto train = [&](Trainer& trainer, const mesh::Mesh& mesh) {
    run_steps(trainer, mesh, 0, spec.training.steps, history);
    const double held_out = trainer.evaluate(7);  // divides by no layout
    if (mesh.rank() == 0) history.held_out = held_out;
  };
  with_trainers(spec, ranks, train, options);
  return history;
}

}  // namespace ridgeline::train
