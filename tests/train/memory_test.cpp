// Memory between actions is what the cost room says: every rank's allocations are counted, in every layout.
#include "cost/memory.h"

#include <gtest/gtest.h>

#include "platform/counting_allocator.h"
#include "train/layouts.h"

namespace ridgeline::train {
namespace {

class MemoryTest : public testing::TestWithParam<Layout> {};

TEST_P(MemoryTest, BetweenActionsIsThatOfTheAccount) {
  platform::install_counting_allocator();
  spec::TrainSpec spec = spec_of(GetParam(), token_file());
  spec.model.sequence = 64;  // activations are most of it
  spec.strategy.micro_batch = 2;
  spec.strategy.global_batch = 2 * 8 * GetParam().data;
  const int64_t ranks = GetParam().ranks();
  spec::derive_data(spec.strategy, spec.model, ranks);
  const data::SampleSource source(spec.data, spec.model.sequence, spec.model.vocabulary, spec.training.seed);
  mesh::run_ranks(ranks, [&](int64_t rank, std::shared_ptr<mesh::Store> store) {
    const mesh::Mesh mesh(mesh::MeshShape::of(spec.strategy), rank, store, platform::Device::select("cpu"),
                          mesh::rank_options());
    const int owner = static_cast<int>(rank) + 1;
    platform::count_allocations_for(owner);
    const int64_t before = platform::counted_bytes(owner);
    {
      Trainer trainer(spec, mesh, source);
      int64_t most = 0;
      trainer.observe_actions(
          [&](const schedule::Action&) { most = std::max(most, platform::counted_bytes(owner) - before); });
      trainer.step(0);
      trainer.step(1);
      const int64_t stage = mesh.coordinate(mesh::Axis::pipeline), tensor = mesh.coordinate(mesh::Axis::tensor);
      const cost::Memory expected =
          cost::device_memory(spec.model, spec.strategy, spec.precision.compute, stage, tensor);
      const int64_t inside = cost::recomputed_activations(spec.model, spec.strategy, spec.precision.compute, tensor);
      const double total = static_cast<double>(expected.total() - inside);
      EXPECT_NEAR(static_cast<double>(most) / total, 1.0, 0.01)
          << 100 * (static_cast<double>(most) / total - 1) << " % on stage " << stage << ": " << most
          << " bytes, the account says " << total << " (activations " << expected.activations - inside << ", messages "
          << expected.messages << ")";
      EXPECT_GT(expected.activations - inside, 0);
      mesh.world().barrier().wait();
    }
  });
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, MemoryTest,
    testing::Values(Layout{1, 1, 1, ""}, Layout{1, 1, 1, "full"}, Layout{1, 1, 1, "selective"},
                    Layout{1, 1, 1, "dropout"}, Layout{2, 1, 1, "sp"}, Layout{2, 1, 1, "untied"},
                    Layout{4, 1, 1, "sp selective dropout"}, Layout{8, 1, 1, ""}, Layout{1, 2, 1, ""},
                    Layout{1, 2, 1, "gpipe"}, Layout{1, 2, 1, "gpipe full untied"}, Layout{1, 4, 1, "uneven"},
                    Layout{1, 1, 2, "zero tiny_buckets"}, Layout{1, 1, 8, "zero"}, Layout{2, 2, 2, "sp zero selective"},
                    Layout{1, 2, 2, "zero2"}, Layout{1, 2, 2, "zero3"}, Layout{2, 1, 4, "zero3 sp hybrid"},
                    Layout{1, 4, 2, "zero3 full"}, Layout{1, 2, 1, "vp2"}, Layout{1, 4, 1, "vp2 deep full"},
                    Layout{2, 2, 2, "vp2 sp zero"}, Layout{1, 2, 1, "zb"}, Layout{1, 4, 1, "zb deep"},
                    Layout{2, 2, 1, "zb sp full"}, Layout{1, 2, 1, "zbv"}, Layout{1, 4, 1, "zbv deep"},
                    Layout{2, 2, 2, "zbv sp zero selective"}, Layout{1, 2, 1, "llama3"}, Layout{2, 1, 1, "qwen3 sp"},
                    Layout{1, 2, 2, "bf16 zero"}, Layout{1, 2, 1, "zb bf16"}, Layout{1, 2, 2, "mistral zero full"},
                    Layout{2, 2, 1, "qwen2 selective"}, Layout{1, 1, 1, "ring2"}, Layout{1, 1, 2, "ring4 full zero"},
                    Layout{1, 2, 1, "ring2 zb"}, Layout{2, 1, 2, "ring2 sp zero3 selective"}, Layout{1, 1, 1, "heads2"},
                    Layout{2, 1, 1, "heads4 sp"}, Layout{1, 2, 1, "heads2 full"}, Layout{1, 2, 1, "heads4 zb bf16"},
                    Layout{1, 1, 1, "llama3 heads8"}, Layout{1, 1, 1, "qwen3 heads4 selective"},
                    Layout{1, 1, 1, "qwen3 ring2 selective"}, Layout{1, 1, 1, "mixtral all_experts"},
                    Layout{1, 1, 2, "mixtral all_experts ep2 zero"}, Layout{2, 1, 2, "qwen3_moe all_experts sp ep2"},
                    Layout{1, 2, 2, "shared_experts all_experts full zero3 ep2"},
                    Layout{1, 2, 1, "qwen3_moe all_experts zb selective"}),
    [](const auto& info) { return info.param.name(); });

}  // namespace
}  // namespace ridgeline::train
