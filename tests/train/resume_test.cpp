// Stopping changes nothing: a run that is saved and continued equals one that was not stopped, bit for bit in the same
// layout and to rounding in another.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "spec/families.h"
#include "train/small_run.h"

namespace ridgeline::train {
namespace {

constexpr int64_t kSaved = 4, kSteps = 8;

struct Case {
  std::string name;
  spec::Precision precision;
  int64_t ranks, tensor, pipeline, zero, tied;
  int64_t other_ranks, other_tensor, other_pipeline, other_zero;
  std::string family = "gpt";
  bool offload = false;
  int64_t chunks = 1, other_chunks = 1;
  spec::ScheduleKind schedule = spec::ScheduleKind::one_f_one_b, other_schedule = spec::ScheduleKind::one_f_one_b;
  int64_t context = 1, other_context = 1;
  spec::ContextKind context_kind = spec::ContextKind::ring;
  int64_t expert = 1, other_expert = 1;
};

class ResumeTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override { write_tokens(data(), 101, 20000); }
  std::string data() const { return (folder_.path() / "tokens").string(); }
  std::filesystem::path checkpoints() const { return folder_.path() / "checkpoints"; }

  spec::TrainSpec spec() const {
    const Case& c = GetParam();
    spec::TrainSpec spec = small_spec(data());
    spec.training.steps = kSteps;
    spec.model = spec::as_family(spec.model, c.family);
    spec.model.dropout = 0.1;
    spec.model.tied = c.tied != 0;
    spec.precision.compute = c.precision;
    spec.precision.loss_scale_window = 3;  // the scale moves within the test
    spec.strategy.tensor = c.tensor;
    spec.strategy.pipeline = c.pipeline;
    spec.strategy.context = c.context;
    spec.strategy.context_kind = c.context_kind;
    spec.strategy.expert = c.expert;
    spec.strategy.schedule = c.schedule;
    spec.strategy.virtual_pipeline = c.chunks;
    spec.strategy.zero_stage = c.zero;
    spec.strategy.offload_optimizer = c.offload;
    spec.strategy.bucket_mib = 0.05;
    return spec;
  }

  // Runs all steps, saving on the way; returns what an unbroken run gives.
  History unbroken() {
    History history;
    with_trainers(spec(), GetParam().ranks, [&](Trainer& trainer, const mesh::Mesh& mesh) {
      run_steps(trainer, mesh, 0, kSaved, history);
      trainer.save(checkpoints(), kSaved);
      run_steps(trainer, mesh, kSaved, kSteps, history);
    });
    return history;
  }

  History continued(const spec::TrainSpec& spec, int64_t ranks) {
    History history;
    with_trainers(spec, ranks, [&](Trainer& trainer, const mesh::Mesh& mesh) {
      const std::optional<int64_t> finished = trainer.resume(checkpoints());
      ASSERT_EQ(finished, kSaved);
      run_steps(trainer, mesh, *finished, kSteps, history);
    });
    return history;
  }

  TemporaryFolder folder_;
};

TEST_P(ResumeTest, InTheSameLayoutIsBitForBit) {
  const History expected = unbroken();
  const History actual = continued(spec(), GetParam().ranks);
  for (int64_t step = kSaved; step < kSteps; ++step) {
    EXPECT_EQ(actual.loss[step - kSaved], expected.loss[step]) << "step " << step;
    EXPECT_EQ(actual.gradient_norm[step - kSaved], expected.gradient_norm[step]) << "step " << step;
  }
}

TEST_P(ResumeTest, InAnotherLayoutEqualsToRounding) {
  const Case& c = GetParam();
  const History expected = unbroken();
  spec::TrainSpec other = spec();
  other.strategy.tensor = c.other_tensor;
  other.strategy.sequence_parallel = c.other_tensor > 1;
  other.strategy.pipeline = c.other_pipeline;
  other.strategy.context = c.other_context;
  other.strategy.expert = c.other_expert;
  other.strategy.schedule = c.other_schedule;
  other.strategy.virtual_pipeline = c.other_chunks;
  other.strategy.zero_stage = c.other_zero;
  other.strategy.offload_optimizer = false;
  const History actual = continued(other, c.other_ranks);
  const double bound = c.precision == spec::Precision::fp32 ? 1e-5 : 3e-2;
  for (int64_t step = kSaved; step < kSteps; ++step) {
    EXPECT_NEAR(actual.loss[step - kSaved] / expected.loss[step], 1.0, bound) << "step " << step;
    EXPECT_NEAR(actual.gradient_norm[step - kSaved] / expected.gradient_norm[step], 1.0, bound) << "step " << step;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, ResumeTest,
    testing::Values(Case{"one_rank", spec::Precision::fp32, 1, 1, 1, 0, 1, 4, 2, 1, 1},
                    Case{"all_axes", spec::Precision::fp32, 8, 2, 2, 1, 1, 1, 1, 1, 0},
                    Case{"tied_stages", spec::Precision::fp32, 4, 2, 2, 0, 1, 4, 1, 2, 1},
                    Case{"untied", spec::Precision::fp32, 2, 1, 1, 1, 0, 3, 1, 3, 0},
                    Case{"bf16", spec::Precision::bf16, 4, 1, 2, 1, 1, 2, 2, 1, 0},
                    Case{"fp16", spec::Precision::fp16, 2, 2, 1, 0, 1, 2, 1, 1, 1},
                    Case{"zero3_to_tensor", spec::Precision::fp32, 4, 1, 1, 3, 1, 4, 4, 1, 0},
                    Case{"tensor_to_zero3", spec::Precision::fp32, 4, 4, 1, 0, 1, 4, 1, 1, 3},
                    Case{"zero3_all_axes_bf16", spec::Precision::bf16, 8, 2, 2, 3, 1, 4, 1, 1, 2},
                    Case{"zero2_to_zero3_fp16", spec::Precision::fp16, 2, 1, 1, 2, 0, 8, 1, 2, 3},
                    Case{"llama3", spec::Precision::fp32, 4, 2, 1, 1, 0, 2, 1, 2, 0, "llama3"},
                    Case{"qwen3", spec::Precision::bf16, 4, 2, 2, 0, 1, 4, 4, 1, 0, "qwen3"},
                    Case{"biased", spec::Precision::fp32, 2, 1, 2, 0, 0, 4, 2, 1, 1, "biased"},
                    Case{"offloaded", spec::Precision::fp32, 4, 2, 1, 3, 1, 2, 1, 2, 0, "gpt", true},
                    Case{"interleaved", spec::Precision::fp32, 4, 1, 2, 1, 1, 4, 1, 4, 0, "gpt", false, 2, 1},
                    Case{"to_interleaved", spec::Precision::fp32, 3, 1, 3, 0, 0, 4, 2, 2, 0, "gpt", false, 1, 2},
                    Case{"zero_bubble", spec::Precision::fp32, 4, 1, 2, 1, 1, 2, 1, 2, 0, "gpt", false, 1, 2,
                         spec::ScheduleKind::zero_bubble, spec::ScheduleKind::zero_bubble_v},
                    Case{"zero_bubble_v", spec::Precision::bf16, 2, 1, 2, 0, 1, 4, 2, 2, 1, "gpt", false, 2, 1,
                         spec::ScheduleKind::zero_bubble_v, spec::ScheduleKind::zero_bubble},
                    Case{.name = "ring", .precision = spec::Precision::fp32, .ranks = 4, .tensor = 1, .pipeline = 1,
                         .zero = 1, .tied = 1, .other_ranks = 2, .other_tensor = 2, .other_pipeline = 1,
                         .other_zero = 0, .context = 2},
                    Case{.name = "to_ring", .precision = spec::Precision::fp32, .ranks = 2, .tensor = 1, .pipeline = 2,
                         .zero = 0, .tied = 0, .other_ranks = 8, .other_tensor = 2, .other_pipeline = 1,
                         .other_zero = 3, .family = "llama3", .other_context = 4},
                    Case{.name = "heads_to_other_width", .precision = spec::Precision::bf16, .ranks = 4, .tensor = 1,
                         .pipeline = 1, .zero = 3, .tied = 1, .other_ranks = 4, .other_tensor = 1, .other_pipeline = 1,
                         .other_zero = 2, .family = "qwen3", .context = 4, .other_context = 2,
                         .context_kind = spec::ContextKind::all_to_all},
                    // Biases of the router are state too; here they move with every step.
                    Case{.name = "experts", .precision = spec::Precision::fp32, .ranks = 4, .tensor = 1, .pipeline = 1,
                         .zero = 1, .tied = 0, .other_ranks = 8, .other_tensor = 2, .other_pipeline = 1,
                         .other_zero = 3, .family = "shared_experts", .expert = 2, .other_expert = 4},
                    Case{.name = "experts_to_one_rank", .precision = spec::Precision::bf16, .ranks = 8, .tensor = 1,
                         .pipeline = 2, .zero = 3, .tied = 0, .other_ranks = 1, .other_tensor = 1, .other_pipeline = 1,
                         .other_zero = 0, .family = "qwen3_moe", .expert = 4}),
    [](const auto& info) { return info.param.name; });

TEST(Resume, OfAnotherModelNamesTensorAndShapes) {
  TemporaryFolder folder;
  const std::string data = (folder.path() / "tokens").string();
  write_tokens(data, 101, 20000);
  spec::TrainSpec spec = small_spec(data);
  with_trainers(spec, 1, [&](Trainer& trainer, const mesh::Mesh&) { trainer.save(folder.path() / "checkpoints", 1); });
  spec.model.hidden = 32;
  try {
    with_trainers(spec, 1, [&](Trainer& trainer, const mesh::Mesh&) { trainer.resume(folder.path() / "checkpoints"); });
    FAIL() << "a checkpoint of another shape was loaded";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("tensor \"final_norm.weight\" has the shape [64], expected [32]"));
  }
}

}  // namespace
}  // namespace ridgeline::train
