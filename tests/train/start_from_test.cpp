// Training that starts from Hugging Face weights: read by each rank in its slices or imported as a checkpoint, they are
// the weights that were written.
#include <gtest/gtest.h>

#include "checkpoint/hugging_face/convert.h"
#include "spec/config.h"
#include "spec/families.h"
#include "train/small_run.h"

namespace ridgeline::train {
namespace {

struct Case {
  std::string family;
  int64_t ranks, tensor, pipeline, zero;
};

class StartFrom : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    write_tokens(data(), 101, 20000);
    spec_ = small_spec(data());
    spec_.model = spec::as_family(spec_.model, GetParam().family);
    // Weights that no initial values equal, from a run of one rank.
    spec::TrainSpec other = spec_;
    other.training.seed += 1;
    with_trainers(other, 1, [&](Trainer& trainer, const mesh::Mesh&) {
      for (int64_t step = 0; step < 6; ++step) trainer.step(step);
      loss_ = trainer.evaluate(7);
      trainer.save(folder_.path() / "first", 6);
    });
    checkpoint::CheckpointReader reader(folder_.path() / "first/step-00000006");
    checkpoint::export_hugging_face(reader, spec_.model, weights(), {.largest_file = 50000});
  }

  std::string data() const { return (folder_.path() / "tokens").string(); }
  std::string weights() const { return (folder_.path() / "weights").string(); }

  spec::TrainSpec laid_out() const {
    spec::TrainSpec spec = spec_;
    spec.strategy.tensor = GetParam().tensor;
    spec.strategy.pipeline = GetParam().pipeline;
    spec.strategy.zero_stage = GetParam().zero;
    return spec;
  }

  TemporaryFolder folder_;
  spec::TrainSpec spec_;
  double loss_ = 0.0;
};

TEST_P(StartFrom, FolderAndImportedCheckpointAreTheSameWeights) {
  const checkpoint::HuggingFaceReader reader(weights(), spec_.model);
  const checkpoint::Path imported = folder_.path() / "imported";
  checkpoint::import_hugging_face(reader, spec_.model, imported, {{"updates", 0}, {"config", spec::to_toml(spec_)}});

  const auto train = [&](History& history, const std::function<void(Trainer&)>& start) {
    with_trainers(laid_out(), GetParam().ranks, [&](Trainer& trainer, const mesh::Mesh& mesh) {
      const double initial = trainer.evaluate(7);
      start(trainer);
      const double held_out = trainer.evaluate(7);
      if (mesh.rank() == 0) {
        EXPECT_GT(std::abs(initial / loss_ - 1), 1e-3);
        EXPECT_NEAR(held_out / loss_, 1, 1e-6);
      }
      run_steps(trainer, mesh, 0, 4, history);
    });
  };
  History by_folder, by_import;
  train(by_folder, [&](Trainer& trainer) { trainer.start_from(weights()); });
  train(by_import, [&](Trainer& trainer) { EXPECT_EQ(trainer.resume(imported), 0); });
  EXPECT_EQ(by_folder.loss, by_import.loss);
  EXPECT_EQ(by_folder.gradient_norm, by_import.gradient_norm);
}

INSTANTIATE_TEST_SUITE_P(Cases, StartFrom,
                         testing::Values(Case{"gpt", 2, 2, 1, 0}, Case{"llama", 4, 2, 2, 0}, Case{"qwen3", 4, 2, 1, 1},
                                         Case{"biased", 2, 1, 2, 0}),
                         [](const auto& info) { return info.param.family; });

}  // namespace
}  // namespace ridgeline::train
