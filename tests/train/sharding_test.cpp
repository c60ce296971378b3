// What sharding is for: memory of a rank, as the counting allocator saw it, against the account of the cost room.
#include <gtest/gtest.h>

#include "cost/memory.h"
#include "platform/counting_allocator.h"
#include "train/small_run.h"

namespace ridgeline::train {
namespace {

// Most of it is parameters: the largest one is a thirtieth of the model, activations are small.
spec::TrainSpec wide_spec(const std::string& data) {
  spec::TrainSpec spec = small_spec(data);
  spec.model.layers = 12;
  spec.model.hidden = 128;
  return spec;
}

struct Measured {
  double built = 0;   // bytes of a rank, mean, once the trainers exist
  double peak = 0;    // the most at once until the end of training, saving and loading
  double static_bytes = 0;  // what the cost room says: weights, gradients, optimizer state
  double buffers = 0;
  double activations = 0;
};

class ShardingTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { platform::install_counting_allocator(); }
  void SetUp() override { write_tokens(data(), 101, 20000); }
  std::string data() const { return (folder_.path() / "tokens").string(); }

  // Ranks are threads of this process: they are counted together.
  Measured measure(spec::TrainSpec spec, int64_t ranks) const {
    spec::derive_data(spec.strategy, spec.model, ranks);
    Measured measured;
    const double count = static_cast<double>(ranks);
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const int64_t stage = rank / (spec.strategy.data * spec.strategy.tensor);
      const cost::Memory memory = cost::device_memory(spec.model, spec.strategy, spec.precision.compute, stage,
                                                      rank % spec.strategy.tensor);
      measured.static_bytes += static_cast<double>(memory.weights + memory.gradients + memory.optimizer) / count;
      measured.buffers += static_cast<double>(memory.buffers + memory.host) / count;  // the host is the device here
      measured.activations += static_cast<double>(memory.activations) / count;
    }
    const int64_t before = platform::counted_bytes();
    platform::reset_counted_peak();
    with_trainers(spec, ranks, [&](Trainer& trainer, const mesh::Mesh& mesh) {
      mesh.world().barrier().wait();
      if (mesh.rank() == 0) measured.built = static_cast<double>(platform::counted_bytes() - before) / count;
      mesh.world().barrier().wait();
      trainer.step(0);
      trainer.evaluate(4);
      trainer.save(folder_.path() / "checkpoints", 1);
      trainer.resume(folder_.path() / "checkpoints");
      trainer.step(1);
    });
    measured.peak = static_cast<double>(platform::counted_peak_bytes() - before) / count;
    return measured;
  }

  TemporaryFolder folder_;
};

TEST_F(ShardingTest, ARankKeepsWhatTheCostRoomSays) {
  for (const auto precision : {spec::Precision::fp32, spec::Precision::bf16}) {
    for (const int64_t zero : {0, 1, 2, 3}) {
      for (const auto& [tensor, pipeline, ranks] : {std::tuple{1, 1, 4}, {2, 1, 4}, {1, 2, 4}, {1, 1, 1}}) {
        spec::TrainSpec spec = wide_spec(data());
        spec.precision.compute = precision;
        spec.strategy.zero_stage = zero;
        spec.strategy.tensor = tensor;
        spec.strategy.pipeline = pipeline;
        const Measured measured = measure(spec, ranks);
        EXPECT_NEAR(measured.built / (measured.static_bytes + measured.buffers), 1.0, 0.01)
            << "zero_stage " << zero << ", tensor " << tensor << ", pipeline " << pipeline << ", ranks " << ranks;
      }
    }
  }
}

TEST_F(ShardingTest, ZeroStageThreeFallsAsOneOverN) {
  spec::TrainSpec spec = wide_spec(data());
  const double whole = measure(spec, 1).built;
  spec.strategy.zero_stage = 3;
  for (const int64_t ranks : {2, 4, 8}) {
    const Measured measured = measure(spec, ranks);
    EXPECT_NEAR((measured.built - measured.buffers) * static_cast<double>(ranks) / whole, 1.0, 0.05) << ranks << " ranks";
  }
}

TEST_F(ShardingTest, AnOffloadedOptimizerLiesInHostMemory) {
  for (const auto precision : {spec::Precision::fp32, spec::Precision::bf16}) {
    for (const int64_t zero : {0, 1, 3}) {
      spec::TrainSpec spec = wide_spec(data());
      spec.precision.compute = precision;
      spec.strategy.zero_stage = zero;
      spec.strategy.offload_optimizer = true;
      const Measured measured = measure(spec, 2);
      EXPECT_NEAR(measured.built / (measured.static_bytes + measured.buffers), 1.0, 0.01) << "zero_stage " << zero;
      spec::derive_data(spec.strategy, spec.model, 2);
      EXPECT_EQ(cost::device_memory(spec.model, spec.strategy, precision, 0, 0).optimizer, 0);
    }
  }
}

// Not while values are drawn, nor in training, evaluation, saving or loading: beside what the rank keeps and what is at
// work there is never as much as a tenth of the parameters in the compute precision.
TEST_F(ShardingTest, NothingIsEverWhole) {
  spec::TrainSpec spec = wide_spec(data());
  spec.strategy.zero_stage = 3;
  spec.strategy.recompute = spec::Recompute::full;
  spec.strategy.global_batch = 4;
  const double whole = 4.0 * static_cast<double>(spec::parameter_count(spec.model));
  const Measured measured = measure(spec, 4);
  EXPECT_LT(measured.peak - measured.static_bytes - measured.buffers - measured.activations, whole / 10);
}

}  // namespace
}  // namespace ridgeline::train
